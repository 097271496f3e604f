"""A model that answers from a script, in the process."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from gateway.domain.canonical import canonical
from gateway.domain.errors import ModelError
from gateway.domain.model import Finish, FunctionCall, ModelReply, ModelRequest, Usage

Line: TypeAlias = ModelReply | ModelError | Callable[[ModelRequest], Awaitable[ModelReply]]


class ScriptedModel:
    """Implements `ModelProvider`; after the script's last line it echoes what was said last."""

    def __init__(
        self,
        script: Iterable[Line] = (),
        *,
        asks_person: bool = False,
        context_window: int | None = None,
        before: Callable[[], None] | None = None,
        name: str = "scripted:model",
    ) -> None:
        self.script = list(script)
        self.requests: list[ModelRequest] = []
        self._asks_person = asks_person
        self._context_window = context_window
        self._before = before
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_window(self) -> int | None:
        return self._context_window

    @property
    def asks_person(self) -> bool:
        return self._asks_person

    async def complete(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        self.requests.append(request)
        if self._before is not None:
            self._before()
        if not self.script:
            return says(f"echo: {request.history[-1].text}")
        line = self.script.pop(0)
        if isinstance(line, ModelError):
            raise line
        if isinstance(line, ModelReply):
            return line
        return await line(request)


class SlowModel(ScriptedModel):
    """Answers each request only when the test lets it, and knows how many are under way."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Semaphore(0)
        self.asked = asyncio.Semaphore(0)
        self.under_way = 0
        self.most = 0

    async def complete(self, request: ModelRequest, *, on_text: object = None) -> ModelReply:
        self.requests.append(request)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.asked.release()
        try:
            await self.gate.acquire()
        finally:
            self.under_way -= 1
        return says(f"re {request.history[-1].text}")

    def users(self, n: int) -> list[str]:
        """What people said in request `n`."""
        return [item.text for item in self.requests[n].history]


class DictatedModel(ScriptedModel):
    """Writes what the test dictates, piece by piece, up to a reply or an error."""

    def __init__(self) -> None:
        super().__init__()
        self.listened: list[bool] = []
        self._dictated: asyncio.Queue[str | ModelReply | ModelError] = asyncio.Queue()

    @property
    def listens(self) -> bool:
        """Whether everything that was dictated is written."""
        return self._dictated.empty()

    def dictate(self, *lines: str | ModelReply | ModelError) -> None:
        for line in lines:
            self._dictated.put_nowait(line)

    async def complete(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        self.requests.append(request)
        self.listened.append(on_text is not None)
        while isinstance(line := await self._dictated.get(), str):
            if on_text is not None:
                on_text(line)
        if isinstance(line, ModelError):
            raise line
        return line


def says(text: str, *, finish: Finish = Finish.STOP) -> ModelReply:
    """A reply of text alone."""
    usage = Usage(input_tokens=10, output_tokens=5)
    return ModelReply(text=text, calls=(), usage=usage, finish=finish)


def calls(*asked: tuple[str, object], text: str = "") -> ModelReply:
    """A reply that calls functions, each given by name and arguments."""
    return ModelReply(
        text=text,
        calls=tuple(
            FunctionCall(id=f"c{i}", name=name, arguments=canonical(arguments))
            for i, (name, arguments) in enumerate(asked)
        ),
        usage=Usage(input_tokens=10, output_tokens=5),
        finish=Finish.TOOLS,
    )


def calls_tool(alias: str, **arguments: object) -> ModelReply:
    """A reply that calls one MCP tool through `tool_call`."""
    return calls(("tool_call", {"calls": [{"name": alias, "arguments": arguments}]}))
