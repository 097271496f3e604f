"""`hermes mcp add`, `remove`, `enable`, `disable`: changes that keep the rest of the file."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from gateway.cli.errors import CommandFailed, NoSuch
from gateway.cli.invocation import home_of
from gateway.cli.mcp_home import (
    SECTION,
    at_terminal,
    confirm,
    entry_of,
    load_home,
    logs_of,
    redactor_of,
    write,
)
from gateway.cli.mcp_login import sign_in
from gateway.cli.mcp_report import report_of, tell_report
from gateway.cli.output import print_data, print_json, say
from gateway.cli.rest_of_line import rest_of

if TYPE_CHECKING:
    from gateway.config.home import Home

_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A server of mcp_servers.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Trust(StrEnum):
    """What a server may do unasked."""

    FULL = "full"
    UNTRUSTED = "untrusted"


class Auth(StrEnum):
    """How we show who we are to a server with a URL."""

    OAUTH = "oauth"
    HEADER = "header"


def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    *,
    url: Annotated[str | None, typer.Option(metavar="URL", help="Of a remote server.")] = None,
    command: Annotated[str | None, typer.Option(metavar="PROGRAM", help="Starts it.")] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="K=V …", help="A variable of the command.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="'K: V'", help="Sent with each request.")
    ] = None,
    auth: Annotated[Auth | None, typer.Option(help="How to sign in at a URL.")] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="codex", help="Fills in --command and --args.")
    ] = None,
    trust: Annotated[Trust | None, typer.Option(help="untrusted asks before each write.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an entry of that name.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    args: Annotated[
        str | None,
        typer.Option(metavar="…", help="Comes last: the rest of the line is the command's."),
    ] = None,
) -> None:
    """Add a server to config.yaml and try it; it is written also when it cannot be reached."""
    from gateway.app.server_entries import Unfit, Wanted, entry_from, shown

    del args  # For the help alone: what stands behind it never gets here.
    wanted = Wanted(
        url=url,
        command=command,
        args=rest_of(ctx),
        env=env or (),
        headers=header or (),
        auth=None if auth is None else auth.value,
        preset=preset,
        trust=None if trust is None else trust.value,
    )
    try:
        entry = entry_from(wanted)
    except Unfit as problem:
        raise typer.BadParameter(str(problem), param_hint=problem.option) from problem
    home = home_of(ctx)
    home.create()
    if not force and _is_there(home, name):
        raise CommandFailed(f"{name} is configured already; --force replaces it")
    if not yes and not as_json and at_terminal():
        confirm(f"Add {name} and connect to it ({shown(entry)})?")
    write(ctx, home, {(SECTION, name): entry})
    if auth is Auth.OAUTH and not as_json and at_terminal():
        _signed_in(ctx, name)
        return
    report = _tried(ctx, name)
    if as_json:
        print_json({"server": name, "written": True, "test": report})
        return
    tell_report(report)
    outcome = "it works" if report["ok"] else "it could not be connected, and is written anyway"
    say(f"added {name} to {home.config_file}: {outcome}")


def _signed_in(ctx: typer.Context, name: str) -> None:
    """Sign in to a server that has just been written; it stays written when that fails."""
    home, loaded = load_home(ctx)
    entry = entry_of(loaded, name)
    if entry is None:
        raise NoSuch("server", name)
    failed = sign_in(ctx, home, loaded, entry, flow=None, no_browser=False, as_json=False)
    outcome = f"sign in with: hermes mcp login {name}" if failed else "it works"
    say(f"added {name} to {home.config_file}: {outcome}")


def remove(ctx: typer.Context, name: Name, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a server from config.yaml, and its sign-in; a running gateway ends it."""
    import asyncio

    from gateway.app.logins import log_out
    from gateway.config.writer import REMOVED

    home = home_of(ctx)
    if not _is_there(home, name):
        raise NoSuch("server", name)
    if not yes and not as_json:
        if not at_terminal():
            raise CommandFailed(f"{name} is still there: without a terminal, --yes removes it")
        confirm(f"Remove {name} from {home.config_file}?")
    left = _left_in_env(home, name)
    write(ctx, home, {(SECTION, name): REMOVED})
    asyncio.run(log_out(home, name))
    if as_json:
        print_json({"server": name, "removed": True, "left_in_env": left})
        return
    say(f"removed {name} from {home.config_file}")
    if left:
        say(f"still in {home.env_file}: {', '.join(left)}")


def enable(ctx: typer.Context, name: Name, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Let chats use a server again."""
    del yes  # Taken as by the other commands; there is nothing to ask.
    _switch(ctx, name, on=True, as_json=as_json)


def disable(ctx: typer.Context, name: Name, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Keep a server's entry, and do not start it."""
    del yes  # Taken as by the other commands; there is nothing to ask.
    _switch(ctx, name, on=False, as_json=as_json)


# --- inside -------------------------------------------------------------------------


def _switch(ctx: typer.Context, name: str, *, on: bool, as_json: bool) -> None:
    home = home_of(ctx)
    if not _is_there(home, name):
        raise NoSuch("server", name)
    write(ctx, home, {(SECTION, name, "enabled"): on})
    if as_json:
        print_json({"server": name, "enabled": on})
    else:
        print_data(f"{name} is {'enabled' if on else 'disabled'}")


def _is_there(home: "Home", name: str) -> bool:
    return name in _entries(home)


def _entries(home: "Home") -> dict[str, object]:
    """Return the entries as they are written, also those that cannot be used."""
    from gateway.config.document import read_document

    section = (read_document(home.config_file) or {}).get(SECTION)
    if not isinstance(section, Mapping):
        return {}
    return {str(key): value for key, value in cast("Mapping[object, object]", section).items()}


def _left_in_env(home: "Home", name: str) -> list[str]:
    """Name the variables of `.env` that only this entry has used."""
    from gateway.config.dotenv import read_env_file

    entries = _entries(home)
    used = set(_PLACEHOLDER.findall(str(entries.pop(name))))
    used -= set(_PLACEHOLDER.findall(str(entries)))
    return sorted(used & set(read_env_file(home.env_file).variables))


def _tried(ctx: typer.Context, name: str) -> dict[str, Any]:
    import asyncio

    from gateway.app.servers import Operator, check_server

    home, loaded = load_home(ctx)
    entry = entry_of(loaded, name)
    if entry is None:
        raise NoSuch("server", name)
    redactor = redactor_of(loaded)
    with logs_of(home, loaded, redactor):
        tested = asyncio.run(check_server(home, loaded, entry, request=None, operator=Operator()))
    return report_of(name, tested, None, redactor)
