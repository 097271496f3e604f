"""`hermes mcp`: which servers are configured, whether one works, one call by hand, and changes."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from gateway.cli.errors import CommandFailed, ExitCode, NoSuch
from gateway.cli.invocation import home_of, invocation_of
from gateway.cli.mcp_configure import configure
from gateway.cli.mcp_document import client_document
from gateway.cli.mcp_edit import add, disable, enable, remove
from gateway.cli.mcp_home import at_terminal, entry_of, load_home, logs_of, redactor_of
from gateway.cli.mcp_login import login, logout, reauth
from gateway.cli.mcp_report import called, empty_report, report_of, tell_report
from gateway.cli.mcp_serve import serve
from gateway.cli.output import print_data, print_json, say
from gateway.cli.rest_of_line import RestOfLine

if TYPE_CHECKING:
    from gateway.app.servers import Entry, Operator, Request
    from gateway.domain.canonical import CanonicalJson
    from gateway.domain.tools import ToolSpec

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List, test, call and change the configured MCP servers, and sign in to them.",
)

app.command("add", cls=RestOfLine)(add)
app.command("configure")(configure)
app.command("remove")(remove)
app.command("enable")(enable)
app.command("disable")(disable)
app.command("login")(login)
app.command("reauth")(reauth)
app.command("logout")(logout)
app.command("client-document")(client_document)
app.command("serve")(serve)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A server of mcp_servers.")]

SKIPPED: Final = "skipped"
"""The state of an entry that cannot be used."""


@app.command("list")
def list_servers(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List the configured servers; state and tools are those of the running gateway, if any."""
    import asyncio

    from gateway.app.logins import sign_in_state
    from gateway.app.servers import entries

    home, loaded = load_home(ctx)
    found = entries(loaded)
    running = asyncio.run(_running(ctx))
    rows = [_row(entry, running, sign_in_state(home, entry)) for entry in found]
    if as_json:
        print_json({"servers": rows})
        return
    for row in rows:
        print_data(_line(row))
    if not rows:
        say("no MCP server is configured")


@app.command("test")
def check(
    ctx: typer.Context,
    name: Name,
    *,
    call: Annotated[
        tuple[str, str] | None,
        typer.Option("--call", metavar="TOOL JSON", help="Call this tool too."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Connect to one server and list its tools; exit 1 when that fails, 3 without such a server."""
    import asyncio

    from gateway.app.servers import check_server

    request = None if call is None else _request(*call)
    home, loaded = load_home(ctx)
    entry = entry_of(loaded, name)
    if entry is None:
        if as_json:
            print_json(empty_report(name, "is not configured"))
        raise NoSuch("server", name)
    redactor = redactor_of(loaded)
    with logs_of(home, loaded, redactor):
        operator = _operator(yes=False)
        tested = asyncio.run(check_server(home, loaded, entry, request=request, operator=operator))
    report = report_of(name, tested, request, redactor)
    if as_json:
        print_json(report)
    else:
        tell_report(report)
    if not report["ok"]:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def call(
    ctx: typer.Context,
    name: Name,
    tool: Annotated[
        str, typer.Argument(metavar="TOOL", help="The server's own name, or an alias.")
    ],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help='An object: {"text": "hello"}')],
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Allow the call, where an approval is needed.")
    ] = False,
) -> None:
    """Call one tool, as a chat would, and print its result as JSON.

    What needs an approval is asked at the terminal; without one and without --yes it is not run.
    """
    import asyncio

    from gateway.app.servers import call_tool
    from gateway.domain.tools import CallState

    request = _request(tool, arguments)
    home, loaded = load_home(ctx)
    entry = entry_of(loaded, name)
    if entry is None:
        raise NoSuch("server", name)
    redactor = redactor_of(loaded)
    for warning in entry.warnings:
        say(f"warning: {redactor.redact(warning)}")
    with logs_of(home, loaded, redactor):
        operator = _operator(yes=yes)
        result = asyncio.run(call_tool(home, loaded, entry, request, operator=operator))
    shown = called(request, result, redactor)
    print_json({"server": name, **shown})
    if result.state is not CallState.OK:
        raise CommandFailed(str(shown["text"]) or f"{tool} failed")


def _request(tool: str, arguments: str) -> "Request":
    from gateway.app.servers import Request
    from gateway.domain.canonical import NotCanonical, canonical, parse_json

    try:
        value = parse_json(arguments)
        if not isinstance(value, dict):
            raise typer.BadParameter("must be a JSON object", param_hint="JSON")
        return Request(tool=tool, arguments=canonical(cast("dict[str, object]", value)))
    except NotCanonical as error:
        raise typer.BadParameter(f"is no proper JSON: {error}", param_hint="JSON") from error


# --- asking the operator ------------------------------------------------------------


def _operator(*, yes: bool) -> "Operator":
    from gateway.app.servers import Operator

    return Operator(yes=yes, ask=_ask if at_terminal() else None)


async def _ask(spec: "ToolSpec", arguments: "CanonicalJson") -> bool:
    from gateway.domain.text import show_escapes
    from gateway.runtime.redact import shown_arguments

    say(f"Server {show_escapes(spec.server)} wants to run {show_escapes(spec.name)} with")
    say(shown_arguments(arguments, redact=()))
    say("Allow it? [y/N]")
    return (await _typed_line()).strip().casefold() in {"y", "yes"}


async def _typed_line() -> str:
    """Wait for a line without blocking the loop: Ctrl-C must end the wait."""
    import asyncio

    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
    return sys.stdin.readline()


# --- list ---------------------------------------------------------------------------


async def _running(ctx: typer.Context) -> Mapping[str, Mapping[str, Any]]:
    """Return the running gateway's servers by name; none when none answers."""
    from gateway.control.client import SocketClient
    from gateway.domain.errors import ControlError

    client = SocketClient.of(home_of(ctx).path, environ=invocation_of(ctx).environ)
    try:
        status = await client.status()
    except ControlError:
        return {}
    return {str(item["name"]): item for item in status["mcp_servers"]}


def _row(
    entry: "Entry", running: Mapping[str, Mapping[str, Any]], sign_in: str | None
) -> dict[str, Any]:
    from gateway.domain.tools import ServerState

    config = entry.config
    now = running.get(entry.name)
    if config is None:
        state, reason = SKIPPED, entry.problem
    elif now is not None:
        state, reason = str(now["state"]), str(now["reason"])
    elif config.enabled:
        state, reason = ServerState.CLOSED.value, "no running gateway has it"
    else:
        state, reason = ServerState.DISABLED.value, ""
    tools = None if config is None else config.tools
    return {
        "name": entry.name,
        "transport": None if config is None else config.transport.value,
        "enabled": None if config is None else config.enabled,
        "trust": None if config is None else config.trust.value,
        "auth": None if config is None else config.auth.value,
        "sign_in": sign_in,
        "state": state,
        "reason": reason,
        "tools": None if now is None else now["tools"],
        "filter": None
        if tools is None
        else {
            "include": None if tools.include is None else list(tools.include),
            "exclude": list(tools.exclude),
        },
    }


def _line(row: Mapping[str, Any]) -> str:
    from gateway.domain.tools import ServerState
    from gateway.runtime.server_replies import tools_shown

    parts = [f"{row['name']} {row['state']}"]
    if row["tools"] is not None:
        parts.append(tools_shown(row["tools"], sleeps=row["state"] == ServerState.LAZY))
    if row["trust"] is not None:
        parts += [row["transport"], f"trust {row['trust']}"]
    if row["sign_in"] is not None:
        parts.append(f"{row['auth']}: {row['sign_in']}")
    if row["filter"] is not None:
        parts += _filter_words(row["filter"]["include"], row["filter"]["exclude"])
    reason = f": {row['reason']}" if row["reason"] else ""
    return f"{', '.join(parts)}{reason}"


def _filter_words(include: Sequence[str] | None, exclude: Sequence[str]) -> Iterable[str]:
    if include is not None:
        yield f"include {' '.join(include)}" if include else "no tools (include is empty)"
    elif exclude:
        yield f"exclude {' '.join(exclude)}"
