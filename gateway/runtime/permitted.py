"""The tool host as some people may use it in a place: the one function through which their calls go."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gateway.domain.ids import Actor, Place
from gateway.domain.tools import (
    CallState,
    Reloaded,
    ServerStatus,
    ToolCall,
    ToolHit,
    ToolResult,
    ToolSpec,
)
from gateway.ports import Approver, ToolHost
from gateway.runtime.access import Access


@dataclass(frozen=True, slots=True, kw_only=True)
class Permitted:
    """Implements `ToolHost`: it knows every tool, and does not call what one of `people` may not use."""

    host: ToolHost
    access: Access
    people: tuple[Actor, ...]
    place: Place

    def tools(self) -> Sequence[ToolSpec]:
        """Every registered tool, by alias."""
        return self.host.tools()

    def find(self, name: str) -> ToolSpec | None:
        """Find as the host does."""
        return self.host.find(name)

    def search(self, query: str, *, limit: int) -> Sequence[ToolHit]:
        """Rank as the host does."""
        return self.host.search(query, limit=limit)

    def servers(self) -> Sequence[ServerStatus]:
        """The status of every server."""
        return self.host.servers()

    async def wait_ready(self, seconds: float, *, servers: Collection[str] | None = None) -> None:
        """Wait as the host does."""
        await self.host.wait_ready(seconds, servers=servers)

    async def call(self, call: ToolCall, approver: Approver) -> ToolResult:
        """Run a call as the host does when all of `people` may; any other is refused."""
        spec = self.host.find(call.alias)
        if spec is not None and not self.permits(spec):
            text = f"{spec.alias} may not be used by this person here. It was not called."
            return ToolResult(call=call.id, state=CallState.REFUSED, text=text)
        return await self.host.call(call, approver)

    async def reload(self, server: str | None = None) -> Reloaded:
        """Reload as the host does: everybody uses the same servers."""
        return await self.host.reload(server)

    @property
    def restricts(self) -> bool:
        """Whether there may be a tool that one of `people` may not use here."""
        return any(self.access.restricts(who, self.place) for who in self.people)

    def permits(self, spec: ToolSpec) -> bool:
        """Say whether all of `people` may use a tool here."""
        return all(
            self.access.may_use(who, alias=spec.alias, server=spec.server, place=self.place)
            for who in self.people
        )
