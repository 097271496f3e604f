"""`hermes mcp configure`: which tools of a server chats may see, chosen from what it offers now."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.errors import CommandFailed, NoSuch
from gateway.cli.mcp_home import (
    SECTION,
    at_terminal,
    entry_of,
    load_home,
    logs_of,
    redactor_of,
    write,
)
from gateway.cli.output import print_data, print_json, say

if TYPE_CHECKING:
    from gateway.app.servers import Entry
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from mcp_host.filters import ToolFilter
    from mcp_host.server_config import ServerConfig

_HOW: Final = "numbers to switch, empty to save, q to leave it as it is"


def configure(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A server of mcp_servers.")],
    *,
    on: Annotated[
        list[str] | None, typer.Option("--on", metavar="TOOL", help="Let chats see it.")
    ] = None,
    off: Annotated[
        list[str] | None, typer.Option("--off", metavar="TOOL", help="Keep it from chats.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Choose a server's tools; patterns of its filter that need not change stay as they are."""
    from mcp_host.choosing import choose
    from mcp_host.filters import ToolFilter

    home, loaded = load_home(ctx)
    entry = entry_of(loaded, name)
    if entry is None:
        raise NoSuch("server", name)
    if entry.config is None:
        raise CommandFailed(f"{name}: {entry.problem}")
    told = bool(on or off or yes)
    if not told and not at_terminal():
        raise CommandFailed("without a terminal, say which: --on TOOL, --off TOOL")
    names = _offered(home, loaded, entry, entry.config)
    before = ToolFilter.of(entry.config.tools)
    wanted = {tool for tool in names if before.admits(tool)}
    for tool in (*(on or ()), *(off or ())):
        if tool not in names:
            raise NoSuch("tool", f"{tool} at {name}")
    wanted = (wanted | set(on or ())) - set(off or ())
    if not told:
        wanted = _ticked(names, wanted)
    after = choose(before, names, wanted)
    if after != before:
        write(ctx, home, _changes(name, after))
    if as_json:
        written = {
            "include": None if after.include is None else list(after.include),
            "exclude": list(after.exclude),
        }
        print_json({"server": name, "tools": sorted(wanted), "filter": written})
        return
    print_data(f"{name}: {len(wanted)} of {len(names)} tools")
    say("nothing was changed" if after == before else f"written to {home.config_file}")


def _changes(name: str, after: "ToolFilter") -> dict[tuple[str, ...], object]:
    from gateway.config.writer import REMOVED

    include = REMOVED if after.include is None else list(after.include)
    return {
        (SECTION, name, "tools", "include"): include,
        (SECTION, name, "tools", "exclude"): list(after.exclude) if after.exclude else REMOVED,
    }


def _offered(
    home: "Home", loaded: "Loaded", entry: "Entry", config: "ServerConfig"
) -> Sequence[str]:
    """Return the own names of all tools the server has, also of those that are filtered out."""
    import asyncio

    from gateway.app.servers import Operator, check_server

    tools = config.tools.model_copy(update={"include": None, "exclude": ()})
    bare = replace(entry, config=config.model_copy(update={"tools": tools}))
    redactor = redactor_of(loaded)
    with logs_of(home, loaded, redactor):
        tested = asyncio.run(check_server(home, loaded, bare, request=None, operator=Operator()))
    if tested.agreed is None:
        error = redactor.redact(tested.error)
        raise CommandFailed(f"nothing was changed: {entry.name} cannot be connected: {error}")
    return sorted(spec.name for spec in tested.tools if not spec.utility)


def _ticked(names: Sequence[str], wanted: set[str]) -> set[str]:
    """Let somebody at the terminal switch tools by their numbers."""
    from gateway.domain.text import show_escapes

    while True:
        for number, name in enumerate(names, 1):
            say(f"{number:4} [{'x' if name in wanted else ' '}] {show_escapes(name)}")
        answer = str(typer.prompt(_HOW, default="", show_default=False, err=True)).strip()
        if answer.casefold() == "q":
            raise CommandFailed("nothing was changed")
        if not answer:
            return wanted
        words = answer.replace(",", " ").split()
        if all(word.isdecimal() and 0 < int(word) <= len(names) for word in words):
            wanted = wanted ^ {names[int(word) - 1] for word in words}
        else:
            say(f"a number is from 1 to {len(names)}")
