"""A small HTTP/1.1 server on a real loopback socket that can also break off in mid-answer."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import cast


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request; header names are lower case.

    `body` is the JSON object that was sent, empty when `raw` is something else.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, object]
    raw: bytes = b""


class Answer:
    """Writes one response."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def gone(self) -> None:
        """Return when the client has closed the connection."""
        while await self._reader.read(1_024):
            pass

    async def whole(
        self,
        status: int,
        body: bytes,
        *,
        media_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a complete response."""
        given = {"content-type": media_type, "content-length": str(len(body)), **(headers or {})}
        self._writer.write(_head(status, given) + body)
        await self._writer.drain()

    async def json(
        self, status: int, body: object, *, headers: Mapping[str, str] | None = None
    ) -> None:
        await self.whole(status, json.dumps(body).encode(), headers=headers)

    async def start_events(self, *, headers: Mapping[str, str] | None = None) -> None:
        """Begin a stream of server-sent events."""
        own = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        self._writer.write(_head(200, {**own, **(headers or {})}))
        await self._writer.drain()

    async def event(self, data: object, *, name: str = "", id: str = "", retry: str = "") -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        fields = {"event": name, "id": id, "retry": retry}
        piece = "".join(f"{key}: {value}\n" for key, value in fields.items() if value)
        piece += f"data: {text}\n\n"
        await self.piece(piece.encode())

    async def piece(self, raw: bytes) -> None:
        """Send a part of a body that was started, as it is."""
        self._writer.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
        await self._writer.drain()

    async def end_events(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def cut(self) -> None:
        """Close the connection in the middle of the response."""
        self._writer.close()

    def declare(self, length: int) -> None:
        """Start a response of that length whose body will not come whole."""
        headers = {"content-type": "application/json", "content-length": str(length)}
        self._writer.write(_head(200, headers))


Handler = Callable[[Request, Answer], Awaitable[None]]


@dataclass(slots=True)
class Loopback:
    """A running server; `requests` are what came in, oldest first."""

    port: int
    requests: list[Request] = field(default_factory=list[Request])
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    server: asyncio.Server | None = None
    idle: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    busy: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def refuse(self) -> None:
        """Take no connection any more; what is being answered goes on."""
        if self.server is not None:
            self.server.close()
        for writer in self.idle:
            writer.close()

    def stop(self) -> None:
        """Be gone at once."""
        self.refuse()
        for writer in self.busy:
            writer.close()


@asynccontextmanager
async def serve(
    make_handler: Callable[[Loopback], Handler],
    *,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[Loopback]:
    """Serve on 127.0.0.1 until the end of the block; `port` 0 takes a free one."""
    loopback = Loopback(port=0)
    handle = make_handler(loopback)
    open_now: set[asyncio.Task[object]] = set()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_now.add(task)
        loopback.idle.add(writer)
        try:
            while not writer.is_closing() and (request := await _read(reader)) is not None:
                loopback.requests.append(request)
                loopback.idle.discard(writer)
                loopback.busy.add(writer)
                await handle(request, Answer(reader, writer))
                loopback.busy.discard(writer)
                loopback.idle.add(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            loopback.idle.discard(writer)
            loopback.busy.discard(writer)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            open_now.discard(task)

    server = await asyncio.start_server(connection, "127.0.0.1", port, ssl=tls)
    loopback.server = server
    loopback.port = cast("tuple[str, int]", server.sockets[0].getsockname())[1]
    try:
        yield loopback
    finally:
        loopback.closing.set()
        loopback.stop()
        await asyncio.gather(*open_now, return_exceptions=True)
        await server.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    """Return the next request of a connection, None at its end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, path, _ = lines[0].split(" ", 2)
    headers = _headers(lines[1:])
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    is_form = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    text = b"{}" if is_form or not raw else raw
    body = cast("Mapping[str, object]", json.loads(text))
    return Request(method=method, path=path, headers=headers, body=body, raw=raw)


def _headers(lines: Sequence[str]) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} x", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
