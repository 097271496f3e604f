"""A server in this process, behind the link of a transport: no process, no wire, no time.

`MemoryServers.open` is what a connection opens; each opening makes a new `MemoryServer`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as wire
from mcp.shared.message import SessionMessage

from gateway.domain.errors import ToolHostError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

Message = dict[str, Any]
Handle = Callable[["MemoryServer", Message], Message | None]
"""Answers a request with `{"result": …}` or `{"error": …}`; None answers nothing."""

HANDSHAKE: Message = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "memory", "version": "1"},
}
DISCOVERED: Message = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
ECHO: Message = {"name": "echo", "inputSchema": {"type": "object"}}


def legacy(server: "MemoryServer", message: Message) -> Message | None:
    """Answer as a handshake-era server with one tool."""
    match message["method"]:
        case "initialize":
            return {"result": HANDSHAKE}
        case "tools/list":
            return {"result": {"tools": server.tools}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": "hi"}]}}
        case _:
            return {"error": {"code": -32601, "message": "unknown method"}}


def modern(server: "MemoryServer", message: Message) -> Message | None:
    """Answer as a 2026-07-28 server that leaves out what it may."""
    match message["method"]:
        case "initialize":
            return {"error": {"code": -32022, "message": "no"}}
        case "server/discover":
            return {"result": DISCOVERED}
        case _:
            return legacy(server, message)


class MemoryServer:
    """One opened server; `requests` and `notifications` are what it has got so far."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.tools: list[Message] = [ECHO]
        self.requests: list[Message] = []
        self.notifications: list[Message] = []
        self.answers: dict[object, Message] = {}
        self.news = asyncio.Condition()
        to_client = anyio.create_memory_object_stream[SessionMessage | Exception](1_000)
        to_server = anyio.create_memory_object_stream[SessionMessage](1_000)
        self._send: MemoryObjectSendStream[SessionMessage | Exception] = to_client[0]
        self._receive: MemoryObjectReceiveStream[SessionMessage] = to_server[1]
        self.incoming = to_client[1]
        self.outgoing = to_server[0]
        self.notes: tuple[str, ...] = ()
        self.last_words = ""
        self.needs_person = False
        self.reason = "it went away"

    async def why_ended(self) -> str:
        return self.reason

    def send(self, message: Message) -> None:
        """Send the client something it did not ask for."""
        text = {"jsonrpc": "2.0", **message}
        self._send.send_nowait(SessionMessage(wire.jsonrpc_message_adapter.validate_python(text)))

    def die(self) -> None:
        """End the link as a process that exits does."""
        self._send.close()

    async def serve(self) -> None:
        async for item in self._receive:
            await self._take(item.message.model_dump(by_alias=True, exclude_unset=True))

    async def seen(self, method: str, *, times: int = 1) -> list[Message]:
        """Wait for that many messages of a method and return them."""
        async with self.news:
            await self.news.wait_for(lambda: len(self.of(method)) >= times)
        return self.of(method)

    def of(self, method: str) -> list[Message]:
        return [one for one in (*self.requests, *self.notifications) if one["method"] == method]

    async def answer_to(self, identifier: object) -> Message:
        """Wait for the client's answer to a request of ours."""
        async with self.news:
            await self.news.wait_for(lambda: identifier in self.answers)
        return self.answers[identifier]

    def close(self) -> None:
        for stream in (self._send, self._receive, self.incoming, self.outgoing):
            stream.close()

    async def _take(self, message: Message) -> None:
        if "method" not in message:
            self.answers[message["id"]] = message
        elif "id" in message:
            self.requests.append(message)
            reply = self.handle(self, message)
            if reply is not None:
                self.send({"id": message["id"], **reply})
        else:
            self.notifications.append(message)
        async with self.news:
            self.news.notify_all()


class MemoryServers:
    """Opens servers one after another; `handles` scripts the first ones, `handle` the rest.

    A handle that is an error is raised instead: the server cannot be opened.
    """

    def __init__(
        self, *handles: Handle | ToolHostError, handle: Handle | ToolHostError = legacy
    ) -> None:
        self._handles = list(handles)
        self.handle = handle
        self.opened: list[MemoryServer] = []
        self.attempts = 0
        self.open_now = 0
        self.goes = asyncio.Event()
        """Cleared, a server that has ended stays open."""

        self.goes.set()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[MemoryServer]:
        self.attempts += 1
        handle = self._handles.pop(0) if self._handles else self.handle
        if isinstance(handle, ToolHostError):
            raise handle
        server = MemoryServer(handle)
        self.opened.append(server)
        self.open_now += 1
        serving = asyncio.create_task(server.serve(), name="memory server")
        try:
            yield server
        finally:
            await self.goes.wait()
            self.open_now -= 1
            serving.cancel()
            await asyncio.wait({serving})
            server.close()


def methods(server: MemoryServer) -> list[str]:
    """The methods of the requests a server got, in order."""
    return [str(request["method"]) for request in server.requests]


def params(message: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = message.get("params") or {}
    return found
