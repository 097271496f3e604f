"""An MCP server of the older HTTP transport: one stream of events, and an address for messages.

What it answers to a message is what the Streamable HTTP fake would (MCP 2024-11-05, "HTTP with SSE").
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from tests.fakes.loopback_http import Answer, Handler, Loopback, Request, serve
from tests.fakes.mcp.http_server import HttpServer, Message

STREAM = "/mcp/sse"
MESSAGES = "/mcp/messages"


@dataclass(slots=True, kw_only=True)
class SseServer:
    """A running server; `endpoint` is what it tells as its address for messages."""

    loopback: Loopback
    mind: HttpServer
    endpoint: str = f"{MESSAGES}?session=1"
    streams: list[Answer] = field(default_factory=list[Answer])
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.loopback.port}{STREAM}"

    def posts(self) -> list[Request]:
        return [request for request in self.loopback.requests if request.method == "POST"]

    async def tell(self, message: Message) -> None:
        """Send something by the stream that nobody asked for."""
        await self.streams[-1].event({"jsonrpc": "2.0", **message}, name="message")

    async def handle(self, request: Request, answer: Answer) -> None:
        path = request.path.partition("?")[0]
        match request.method, path:
            case "GET", "/mcp/sse":
                await self._stream(answer)
            case "POST", "/mcp/messages":
                await answer.whole(202, b"Accepted", media_type="text/plain")
                await self._answer(cast("Message", request.body))
            case _, "/mcp/sse" | "/mcp/messages":
                await answer.whole(405, b"Method Not Allowed", media_type="text/plain")
            case _:
                await answer.whole(404, b"Not Found", media_type="text/plain")

    async def _stream(self, answer: Answer) -> None:
        await answer.start_events()
        await answer.event(self.endpoint, name="endpoint")
        self.streams.append(answer)
        gone = asyncio.create_task(answer.gone())
        closing = asyncio.create_task(self.loopback.closing.wait())
        ended = asyncio.create_task(self.ended.wait())
        tasks = {gone, closing, ended}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        over = ended.done()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if over:
            self.ended.clear()
            await answer.end_events()

    async def _answer(self, message: Message) -> None:
        if "id" in message and "method" in message:
            await self.tell({"id": message["id"], **self.mind.reply(message)})


@asynccontextmanager
async def sse_server(*, port: int = 0, **options: Any) -> AsyncGenerator[SseServer]:
    """Serve on 127.0.0.1 until the end of the block."""
    made: list[SseServer] = []

    def make(loopback: Loopback) -> Handler:
        made.append(SseServer(loopback=loopback, mind=HttpServer(loopback=loopback), **options))
        return made[0].handle

    async with serve(make, port=port):
        yield made[0]
