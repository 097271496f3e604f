"""An MCP server at a URL of its own on a real socket, which does what the test tells it to.

It speaks both eras, with sessions in the older one; `intercept` comes before it in everything.
"""

import asyncio
import itertools
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from tests.fakes.loopback_http import Answer, Handler, Loopback, Request, serve

Message = dict[str, Any]
Intercept = Callable[[Request, Answer], Awaitable[bool]]
"""Answers a request and returns True, or leaves it to the server."""

MODERN = "2026-07-28"
ECHO: Message = {
    "name": "echo",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}
WRITE: Message = {**ECHO, "name": "write", "annotations": {}}


@dataclass(slots=True, kw_only=True)
class HttpServer:
    """A running server; `calls` are the texts of the tool calls that ran, oldest first."""

    loopback: Loopback
    modern: bool = False
    with_sessions: bool = True
    as_events: bool = False
    tools: list[Message] = field(default_factory=lambda: [ECHO, WRITE])
    intercept: Intercept | None = None
    calls: list[str] = field(default_factory=list[str])
    sessions: set[str] = field(default_factory=set[str])
    opened: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    news: asyncio.Queue[Message | None] | None = None
    """What its stream of news brings, None at an end of it; without one it offers no stream."""

    listening: asyncio.Event = field(default_factory=asyncio.Event)
    offers: dict[str, Message] = field(default_factory=dict[str, Message])
    """Its capabilities besides tools."""

    results: dict[str, Message] = field(default_factory=dict[str, Message])
    """What it answers to other methods."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.loopback.port}/mcp"

    @property
    def requests(self) -> list[Request]:
        return self.loopback.requests

    def methods(self) -> list[str]:
        """What was asked for so far: the HTTP method, or that of the message in a POST."""
        return [str(request.body.get("method") or request.method) for request in self.requests]

    def expire(self) -> None:
        """Forget every session."""
        self.sessions.clear()

    async def handle(self, request: Request, answer: Answer) -> None:
        if self.intercept is not None and await self.intercept(request, answer):
            return
        match request.method:
            case "POST":
                await self._post(request, answer)
            case "GET" if self.news is not None and self._listens(request):
                await self._tell_news(answer, self.news)
            case "DELETE":
                self.sessions.discard(request.headers.get("mcp-session-id", ""))
                await answer.json(200, {})
            case _:
                await answer.json(404 if not self._knows(request) else 405, {})

    def _knows(self, request: Request) -> bool:
        session = request.headers.get("mcp-session-id")
        return not self.with_sessions or session is None or session in self.sessions

    def _listens(self, request: Request) -> bool:
        # What only looks whether there is a server has no session yet, and gets no stream.
        return self._knows(request) and "mcp-session-id" in request.headers

    async def _tell_news(self, answer: Answer, news: "asyncio.Queue[Message | None]") -> None:
        await answer.start_events()
        self.listening.set()
        while (message := await self._next(news)) is not None:
            await answer.event({"jsonrpc": "2.0", **message})
        self.listening.clear()
        await answer.end_events()

    async def _next(self, news: "asyncio.Queue[Message | None]") -> Message | None:
        """Return what comes next, None at the end of the stream or of the server."""
        item = asyncio.create_task(news.get())
        closing = asyncio.create_task(self.loopback.closing.wait())
        await asyncio.wait({item, closing}, return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()
        if item.done():
            return item.result()
        item.cancel()
        return None

    async def _post(self, request: Request, answer: Answer) -> None:
        message = cast("Message", request.body)
        method = message.get("method", "")
        headers: Mapping[str, str] = {}
        if method == "initialize" and not self.modern and self.with_sessions:
            session = f"session-{next(self.opened)}"
            self.sessions.add(session)
            headers = {"mcp-session-id": session}
        elif not self.modern and self.with_sessions and method != "ping":
            session = request.headers.get("mcp-session-id")
            if session is None:
                await answer.json(400, error(message, -32600, "Missing session ID"))
                return
            if session not in self.sessions:
                await answer.json(404, error(message, -32600, "Session not found"))
                return
        if "id" not in message or "method" not in message:
            await answer.whole(202, b"")
            return
        body = {"jsonrpc": "2.0", "id": message["id"], **self.reply(message)}
        if self.as_events:
            await answer.start_events(headers=headers)
            await answer.event(body)
            await answer.end_events()
        else:
            await answer.json(200, body, headers=headers)

    def reply(self, message: Message) -> Message:
        params: Message = message.get("params") or {}
        match message["method"]:
            case "initialize" if not self.modern:
                capabilities = {"tools": {"listChanged": self.news is not None}, **self.offers}
                return {"result": {**HANDSHAKE, "capabilities": capabilities}}
            case "initialize":
                data = {"supported": [MODERN], "requested": "2025-11-25"}
                return {"error": {"code": -32022, "message": "too old", "data": data}}
            case "server/discover" if self.modern:
                return {"result": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}}
            case "tools/list":
                return {"result": {"tools": self.tools}}
            case "tools/call":
                arguments: Message = params.get("arguments") or {}
                text = str(arguments.get("text", ""))
                self.calls.append(text)
                return {"result": {"content": [{"type": "text", "text": text}]}}
            case "ping" if not self.modern:
                return {"result": {}}
            case method if method in self.results:
                return {"result": self.results[method]}
            case method:
                return {"error": {"code": -32601, "message": f"no {method}"}}


HANDSHAKE: Message = {
    "protocolVersion": "2025-11-25",
    "serverInfo": {"name": "http", "version": "1"},
}


def error(message: Message, code: int, text: str) -> Message:
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}}


@asynccontextmanager
async def mcp_server(
    *, port: int = 0, tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncGenerator[HttpServer]:
    """Serve on 127.0.0.1 until the end of the block."""
    made: list[HttpServer] = []

    def make(loopback: Loopback) -> Handler:
        made.append(HttpServer(loopback=loopback, **options))
        return made[0].handle

    async with serve(make, port=port, tls=tls):
        yield made[0]
