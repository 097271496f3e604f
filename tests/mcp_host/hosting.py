"""A host on real server processes, and a person whose answers are scripted."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from gateway.domain.canonical import CanonicalJson, canonical
from gateway.domain.form import FormAction, FormAnswer
from gateway.domain.ids import Actor, ChatType, Place, QuestionId
from gateway.domain.tools import ServerStatus, ToolCall, ToolResult, ToolSpec
from gateway.ports import Approval, Clock, FormRequest, ModelProvider, SamplingRequest
from gateway.runtime.clock import SystemClock
from mcp_host.host import McpHost, open_host
from mcp_host.server_config import McpConfig, ServerConfig

Answer = TypeVar("Answer")

SERVERS = Path(__file__).resolve().parents[1] / "fakes" / "mcp"
ALLOWED = Approval(allowed=True, question=QuestionId("question"))
ACCEPTED = FormAnswer(
    action=FormAction.ACCEPT, content={"day": "2026-03-01", "size": "s", "gift": True}
)


def legacy(*options: object, **fields: Any) -> ServerConfig:
    """An entry that runs the handshake-era fake."""
    return _entry("legacy_server.py", options, fields)


def modern(*options: object, **fields: Any) -> ServerConfig:
    """An entry that runs the 2026-07-28 fake."""
    return _entry("modern_server.py", options, fields)


def _entry(script: str, options: tuple[object, ...], fields: Mapping[str, Any]) -> ServerConfig:
    args = ["-S", str(SERVERS / script), *map(str, options)]
    return ServerConfig.model_validate({"command": sys.executable, "args": args, **fields})


class Person:
    """Implements `Approver`; says what it is told to say and remembers what it was asked."""

    def __init__(
        self,
        arguments: CanonicalJson,
        *,
        approval: Approval | Exception = ALLOWED,
        form: FormAnswer | Exception = ACCEPTED,
        starting: Exception | None = None,
        sampling: Approval | Exception = ALLOWED,
    ) -> None:
        self.arguments = arguments
        self.approval = approval
        self.form = form
        self.starting = starting
        self.sampling = sampling
        self.samples: list[SamplingRequest] = []
        self.approves: list[ToolSpec] = []
        self.starts: list[QuestionId | None] = []
        self.forms: list[FormRequest] = []
        self.told: list[str] = []
        self.withdrawn = 0
        self.asked = asyncio.Event()
        self.decides = asyncio.Event()
        self.decides.set()

    async def approve(self, spec: ToolSpec) -> Approval:
        self.approves.append(spec)
        return await self._decide(self.approval)

    async def started(self, question: QuestionId | None) -> CanonicalJson:
        self.starts.append(question)
        if self.starting is not None:
            raise self.starting
        return self.arguments

    async def elicit(self, request: FormRequest) -> FormAnswer:
        self.forms.append(request)
        if request.problem:
            return FormAnswer(action=FormAction.DECLINE, reason=request.problem)
        return await self._decide(self.form)

    async def sample(self, request: SamplingRequest) -> Approval:
        self.samples.append(request)
        return await self._decide(self.sampling)

    async def tell(self, text: str) -> None:
        self.told.append(text)

    async def _decide(self, answer: Answer | Exception) -> Answer:
        self.asked.set()
        try:
            await self.decides.wait()
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer


class Running:
    """A host with what a test needs to call it."""

    def __init__(self, host: McpHost, wanted: dict[str, ServerConfig]) -> None:
        self.host = host
        self.wanted = wanted

    async def call(
        self,
        tool: str,
        text: str = "",
        *,
        server: str = "s",
        chat: str = "1",
        platform: str = "telegram",
        person: Person | None = None,
    ) -> ToolResult:
        """Call a tool that takes a text, from a chat."""
        call = call_of(tool, text, server=server, chat=chat, platform=platform)
        return await self.host.call(call, person or Person(call.arguments))

    def status(self, server: str = "s") -> ServerStatus:
        return next(status for status in self.host.servers() if status.name == server)


def arguments(text: str) -> CanonicalJson:
    return canonical({"text": text})


def call_of(
    tool: str,
    text: str = "",
    *,
    server: str = "s",
    chat: str = "1",
    platform: str = "telegram",
) -> ToolCall:
    return ToolCall(
        id="call",
        alias=f"mcp__{server}__{tool}",
        arguments=arguments(text),
        place=Place(platform=platform, chat=chat, chat_type=ChatType.DM),
        requester=Actor(platform=platform, id="1"),
    )


@asynccontextmanager
async def running(
    servers: Mapping[str, ServerConfig] | ServerConfig,
    *,
    clock: Clock | None = None,
    stderr_log: Path | None = None,
    mcp: McpConfig | None = None,
    ready: bool = True,
    models: ModelProvider | None = None,
    schema_cache: Path | None = None,
    tokens: Path | None = None,
) -> AsyncGenerator[Running]:
    """A host for these servers (one alone is called `s`), ready unless told otherwise."""
    wanted = {"s": servers} if isinstance(servers, ServerConfig) else dict(servers)
    async with open_host(
        dict(wanted),
        mcp=mcp or McpConfig(),
        clock=clock or SystemClock(),
        stderr_log=stderr_log,
        version="0.0.1",
        reload=lambda: dict(wanted),
        models=models,
        schema_cache=schema_cache,
        tokens=tokens,
    ) as host:
        if ready:
            await host.wait_ready(30)
        yield Running(host, wanted)


def lines_of(path: Path) -> list[str]:
    """The lines a server has written to a file so far."""
    return path.read_text().splitlines() if path.exists() else []


def is_alive(pid: int) -> bool:
    """Tell whether the process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
