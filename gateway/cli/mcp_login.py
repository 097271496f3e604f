"""`hermes mcp login`, `reauth`, `logout`: who is signed in to a server, changed from a shell."""

from contextlib import closing
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.errors import CommandFailed, ExitCode, NoSuch
from gateway.cli.invocation import home_of, invocation_of
from gateway.cli.mcp_home import at_terminal, entry_of, load_home, logs_of, redactor_of
from gateway.cli.output import print_data, print_json, print_json_line, say

if TYPE_CHECKING:
    from gateway.app.servers import Entry, Tested
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.telemetry.redact import Redactor

Name = Annotated[str, typer.Argument(metavar="NAME", help="A server of mcp_servers.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the page's address.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print each step as a line of JSON.")]


class FlowName(StrEnum):
    """How a person signs in."""

    BROWSER = "browser"
    DEVICE = "device"


Flow = Annotated[
    FlowName | None, typer.Option(help="By a page that comes back here, or a code on any device.")
]


def login(
    ctx: typer.Context,
    name: Name,
    *,
    flow: Flow = None,
    no_browser: NoBrowser = False,
    as_json: AsJson = False,
) -> None:
    """Sign in to a server; exit 1 when there is no token in the end, or a call with it fails."""
    home, loaded = load_home(ctx)
    entry = entry_of(loaded, name)
    if entry is None:
        if as_json:
            _done(name, "is not configured")
        raise NoSuch("server", name)
    error = sign_in(ctx, home, loaded, entry, flow=flow, no_browser=no_browser, as_json=as_json)
    if error:
        raise typer.Exit(ExitCode.FAILED)


def reauth(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A server of mcp_servers.")
    ] = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Each server that people sign in to, in turn.")
    ] = False,
    flow: Flow = None,
    no_browser: NoBrowser = False,
    as_json: AsJson = False,
) -> None:
    """Sign in anew; what there was is used until that has worked."""
    from gateway.app.logins import wants_sign_in
    from gateway.app.servers import entries

    if (name is None) is not every:
        raise typer.BadParameter("give either a server or --all", param_hint="NAME")
    if name is not None:
        login(ctx, name, flow=flow, no_browser=no_browser, as_json=as_json)
        return
    home, loaded = load_home(ctx)
    found = [
        entry
        for entry in entries(loaded)
        if entry.config is not None and wants_sign_in(entry.config)
    ]
    if not found:
        raise CommandFailed("nobody signs in to any of the servers: none has auth: oauth")
    failed = [
        entry.name
        for entry in found
        if sign_in(ctx, home, loaded, entry, flow=flow, no_browser=no_browser, as_json=as_json)
    ]
    if failed:
        raise CommandFailed(f"not signed in to {', '.join(failed)}")


def logout(
    ctx: typer.Context,
    name: Name,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Remove the tokens of a server; a running gateway lets go of it within two seconds."""
    import asyncio

    from gateway.app.logins import log_out

    home = home_of(ctx)
    _, loaded = load_home(ctx)
    removed = asyncio.run(log_out(home, name))
    if not removed and entry_of(loaded, name) is None:
        raise NoSuch("server", name)
    if as_json:
        print_json({"server": name, "removed": removed})
    else:
        print_data(f"signed out of {name}" if removed else f"nobody was signed in to {name}")


def sign_in(
    ctx: typer.Context,
    home: "Home",
    loaded: "Loaded",
    entry: "Entry",
    *,
    flow: FlowName | None,
    no_browser: bool,
    as_json: bool,
) -> str:
    """Sign in to one server, and say how that went; returns what failed, "" for nothing."""
    import asyncio

    from gateway.domain.errors import GatewayError

    redactor = redactor_of(loaded)
    environ = invocation_of(ctx).environ
    terminal = at_terminal()
    opens = terminal and not no_browser and not as_json

    async def run() -> "Tested":
        from gateway.app.logins import log_in
        from gateway.cli.sign_in_person import JsonPerson, ShellPerson
        from gateway.cli.typed_lines import PipedLines, TerminalLines
        from mcp_host.oauth.config import Flow as OAuthFlow

        lines = TerminalLines() if terminal and not as_json else PipedLines()
        person = (
            JsonPerson(entry.name, lines)
            if as_json
            else ShellPerson(entry.name, lines, environ=environ, opens=opens)
        )
        chosen = None if flow is None else OAuthFlow(flow.value)
        with closing(lines):
            return await log_in(home, loaded, entry, person, flow=chosen, environ=environ)

    with logs_of(home, loaded, redactor):
        try:
            tested = asyncio.run(run())
        except GatewayError as error:
            problem = redactor.redact(error.public_message)
            if as_json:
                _done(entry.name, problem)
            else:
                say(f"hermes: {problem}")
            return problem
    if as_json:
        _done(entry.name, "")
    else:
        _tell(entry.name, tested, redactor)
    return ""


def _tell(name: str, tested: "Tested", redactor: "Redactor") -> None:
    for warning in tested.warnings:
        say(f"warning: {redactor.redact(warning)}")
    print_data(f"signed in to {name}: it lists {len(tested.tools)} tools and takes calls")


def _done(name: str, error: str) -> None:
    done: dict[str, Any] = {"event": "done", "server": name, "ok": not error}
    if error:
        done["error"] = error
    print_json_line(done)
