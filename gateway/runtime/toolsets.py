"""Toolsets: the tools of one server under one name, and a host of which some are left out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.domain.tools import (
    CallState,
    Reloaded,
    ServerState,
    ServerStatus,
    ToolCall,
    ToolHit,
    ToolResult,
    ToolSpec,
)
from gateway.ports import Approver, ToolHost

PREFIX: Final = "mcp-"
EVERYTHING: Final[tuple[str, ...]] = ()
"""The toolsets of a chat that is not narrowed."""

_KNOWN: Final = frozenset({ServerState.READY, ServerState.LAZY, ServerState.RECYCLING})
"""States in which the tools of a server are all there are."""


def toolset_of(server: str) -> str:
    """Return the name of the toolset of a server."""
    return f"{PREFIX}{server}"


def toolsets(host: ToolHost) -> tuple[str, ...]:
    """Return the toolsets there are: a server of which no tool is registered has none."""
    return tuple(toolset_of(server.name) for server in host.servers() if server.tools)


def may_have_toolset(state: ServerState, tools: int) -> bool:
    """Tell whether a server in that state, with so many tools, has a toolset or may get one."""
    return tools > 0 or (state not in _KNOWN and state is not ServerState.DISABLED)


def narrowed(host: ToolHost, wanted: Sequence[str]) -> ToolHost:
    """Return the host with only the wanted toolsets; none wanted is all of them."""
    return Narrowed(host=host, wanted=frozenset(wanted)) if wanted else host


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """Implements `ToolHost`: what is not wanted is not there, also for a call by name."""

    host: ToolHost
    wanted: frozenset[str]

    def tools(self) -> Sequence[ToolSpec]:
        """Every registered tool that is wanted, by alias."""
        return tuple(spec for spec in self.host.tools() if self._has(spec.server))

    def find(self, name: str) -> ToolSpec | None:
        """Find as the host does, among what is wanted."""
        spec = self.host.find(name)
        return spec if spec is not None and self._has(spec.server) else None

    def search(self, query: str, *, limit: int) -> Sequence[ToolHit]:
        """Rank the wanted tools for a query, best first."""
        # What is left out must not take the places of what is wanted.
        hits = self.host.search(query, limit=max(limit, len(self.host.tools())))
        return tuple(hit for hit in hits if self._has(hit.spec.server))[:limit]

    def servers(self) -> Sequence[ServerStatus]:
        """The status of each server whose toolset is wanted."""
        return tuple(server for server in self.host.servers() if self._has(server.name))

    async def wait_ready(self, seconds: float, *, servers: Collection[str] | None = None) -> None:
        """Wait as the host does, for what is wanted alone."""
        asked = (server.name for server in self.servers())
        wanted = [name for name in asked if servers is None or name in servers]
        await self.host.wait_ready(seconds, servers=wanted)

    async def call(self, call: ToolCall, approver: Approver) -> ToolResult:
        """Run a call of a wanted tool as the host does; any other is refused."""
        if self.find(call.alias) is None:
            text = f"{call.alias} was not run: it is not in the toolsets of this chat."
            return ToolResult(call=call.id, state=CallState.REFUSED, text=text)
        return await self.host.call(call, approver)

    async def reload(self, server: str | None = None) -> Reloaded:
        """Reload as the host does: every chat uses the same servers."""
        return await self.host.reload(server)

    def _has(self, server: str) -> bool:
        return toolset_of(server) in self.wanted
