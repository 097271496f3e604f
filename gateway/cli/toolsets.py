"""`-t` of `hermes chat`: which MCP toolsets it names, and what that leaves out."""

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from gateway.cli.output import say
from gateway.domain.tools import ServerState
from gateway.runtime.toolsets import may_have_toolset, toolset_of

OPTION = "-t"


def named(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Return the toolsets that were named, empty when the option was not given.

    Raises:
        BadParameter: It was given and names none.
    """
    names = [name.strip() for text in texts or () for name in text.split(",")]
    found = tuple(dict.fromkeys(name for name in names if name))
    if texts and not found:
        raise typer.BadParameter("names no toolset", param_hint=OPTION)
    return found


def running_toolsets(servers: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the toolsets of a running gateway, also those that are still to come."""
    return tuple(
        toolset_of(server["name"])
        for server in servers
        if may_have_toolset(ServerState(server["state"]), server["tools"])
    )


def settle(wanted: Sequence[str], known: Sequence[str]) -> None:
    """Say what a chat that may use only the wanted toolsets leaves out.

    Raises:
        BadParameter: One of them is none of the known ones.
    """
    for name in wanted:
        if name not in known:
            problem = f"there is no toolset {name}; there are: {_listed(known)}"
            raise typer.BadParameter(problem, param_hint=OPTION)
    left_out = [name for name in known if name not in wanted]
    if wanted and left_out:
        say(f"Left out: {_listed(left_out)}.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
