"""MCP servers as one object in the process: gate, start, run, in the order of the real host."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

from gateway.domain.canonical import CanonicalJson, sha256_of
from gateway.domain.errors import Conflict
from gateway.domain.tools import (
    CallState,
    Reloaded,
    ServerState,
    ServerStatus,
    ToolCall,
    ToolFile,
    ToolHit,
    ToolResult,
    ToolSpec,
)
from gateway.ports import Approver

Run: TypeAlias = Callable[[CanonicalJson, Approver], Awaitable[str]]


def tool(
    name: str,
    *,
    server: str = "demo",
    read_only: bool = False,
    parallel: bool = False,
    schema: Mapping[str, object] | None = None,
    description: str = "",
) -> ToolSpec:
    return ToolSpec(
        server=server,
        name=name,
        alias=f"mcp__{server}__{name}",
        title=name.capitalize(),
        description=description or f"What {name} does.",
        input_schema=schema or {"type": "object", "properties": {}},
        definition_sha=sha256_of(f"{server}/{name}"),
        server_sha=sha256_of(server),
        read_only=read_only,
        parallel=parallel,
    )


@dataclass(slots=True, kw_only=True)
class FakeTools:
    """Implements `ToolHost`; `gated` names the tools whose calls are put to a person.

    `files` are what each call of a tool gives besides its text.
    """

    specs: list[ToolSpec] = field(default_factory=list[ToolSpec])
    runs: dict[str, Run] = field(default_factory=dict[str, Run])
    files: dict[str, Sequence[ToolFile]] = field(default_factory=dict[str, Sequence[ToolFile]])
    gated: set[str] = field(default_factory=set[str])
    ran: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    connecting: list[str] = field(default_factory=list[str])
    parked: list[ServerStatus] = field(default_factory=list[ServerStatus])
    waited: list[tuple[float, Sequence[str] | None]] = field(
        default_factory=list[tuple[float, Sequence[str] | None]]
    )

    def add(self, spec: ToolSpec, run: Run | None = None, *, gated: bool = False) -> ToolSpec:
        self.specs.append(spec)
        if run is not None:
            self.runs[spec.alias] = run
        if gated:
            self.gated.add(spec.alias)
        return spec

    def tools(self) -> Sequence[ToolSpec]:
        return tuple(self.specs)

    def find(self, name: str) -> ToolSpec | None:
        return next((spec for spec in self.specs if name in {spec.alias, spec.name}), None)

    def search(self, query: str, *, limit: int) -> Sequence[ToolHit]:
        words = query.casefold().split()
        found = [
            ToolHit(spec=spec, score=float(score))
            for spec in self.specs
            if (
                score := sum(word in f"{spec.name} {spec.description}".casefold() for word in words)
            )
        ]
        return sorted(found, key=lambda hit: -hit.score)[:limit]

    def servers(self) -> Sequence[ServerStatus]:
        names = dict.fromkeys(spec.server for spec in self.specs)
        since = datetime(2026, 1, 1, tzinfo=UTC)
        ready = [
            ServerStatus(
                name=name,
                state=ServerState.READY,
                since=since,
                tools=sum(spec.server == name for spec in self.specs),
            )
            for name in names
        ]
        return (
            ready
            + [
                ServerStatus(name=name, state=ServerState.CONNECTING, since=since, tools=0)
                for name in self.connecting
            ]
            + self.parked
        )

    async def wait_ready(self, seconds: float, *, servers: Collection[str] | None = None) -> None:
        self.waited.append((seconds, None if servers is None else tuple(servers)))

    async def call(self, call: ToolCall, approver: Approver) -> ToolResult:
        spec = self.find(call.alias)
        if spec is None:
            return ToolResult(call=call.id, state=CallState.REFUSED, text="no such tool")
        question = None
        if spec.alias in self.gated:
            approval = await approver.approve(spec)
            if not approval.allowed:
                return ToolResult(call=call.id, state=CallState.REFUSED, text=approval.reason)
            question = approval.question
        try:
            arguments = await approver.started(question)
        except Conflict as error:
            return ToolResult(call=call.id, state=CallState.REFUSED, text=f"not run: {error}")
        self.ran.append((spec.name, arguments))
        run = self.runs.get(spec.alias)
        text = await run(arguments, approver) if run else f"{spec.name} ran with {arguments}"
        files = self.files.get(spec.alias, ())
        return ToolResult(
            call=call.id, state=CallState.OK, text=text, attachments=tuple(files), ms=1
        )

    async def reload(self, server: str | None = None) -> Reloaded:
        return Reloaded()
