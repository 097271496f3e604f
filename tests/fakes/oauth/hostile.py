"""A server whose documents are traps: redirects, bodies without end, bombs, and answers that drip.

What a sign-in must survive when it asks hosts that a stranger's document named.
"""

import asyncio
import gzip
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, cast

Trap = Callable[[asyncio.StreamWriter], Awaitable[None]]

_PIECE: Final = 64 << 10
_MEDIA: Final = b"content-type: application/json\r\n"


@dataclass(slots=True)
class Hostile:
    """A running server; `heads` are the requests it got, as text, `sent` the bytes it got rid of."""

    port: int = 0
    heads: list[str] = field(default_factory=list[str])
    sent: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a client has gone away in the middle of an answer."""

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def redirecting(*locations: str) -> Trap:
    """Answer with a redirect to each in turn, and to the last for ever."""
    left = list(locations)

    async def answer(writer: asyncio.StreamWriter) -> None:
        location = left.pop(0) if len(left) > 1 else left[0]
        head = f"HTTP/1.1 302 x\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()

    return answer


def plain(body: bytes) -> Trap:
    """Answer with a body: no trap, and what the others are compared with."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        length = f"content-length: {len(body)}\r\n\r\n".encode()
        writer.write(b"HTTP/1.1 200 x\r\n" + _MEDIA + length + body)
        await writer.drain()

    return answer


def endless(hostile: Hostile, total: int) -> Trap:
    """Promise and send that many bytes."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 x\r\n" + _MEDIA + f"content-length: {total}\r\n\r\n".encode())
        while hostile.sent < total:
            writer.write(b" " * _PIECE)
            await writer.drain()
            hostile.sent += _PIECE

    return answer


def bomb(size: int) -> Trap:
    """Send a small body that unpacks to a large one."""
    packed = gzip.compress(b" " * size)

    async def answer(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 x\r\n" + _MEDIA + b"content-encoding: gzip\r\n"
        writer.write(head + f"content-length: {len(packed)}\r\n\r\n".encode() + packed)
        await writer.drain()

    return answer


def dripping(hostile: Hostile, *, in_head: bool = False) -> Trap:
    """Send a byte now and then, so that no wait between two of them is long."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 x\r\n")
        if not in_head:
            writer.write(_MEDIA + b"content-length: 1000000\r\n\r\n")
        while True:
            writer.write(b"x: y\r\n" if in_head else b" ")
            await writer.drain()
            hostile.sent += 1
            await asyncio.sleep(0.05)

    return answer


@asynccontextmanager
async def hostile_server(make_trap: Callable[[Hostile], Trap]) -> AsyncGenerator[Hostile]:
    """Serve on 127.0.0.1 until the end of the block."""
    hostile = Hostile()
    trap: Trap | None = None
    open_now: set[asyncio.Task[object]] = set()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert trap is not None
        open_now.add(task)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                hostile.heads.append(head.decode("latin-1"))
                try:
                    await trap(writer)
                except ConnectionError:
                    hostile.left.set()
                    raise
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            open_now.discard(task)

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    hostile.port = cast("tuple[str, int]", server.sockets[0].getsockname())[1]
    trap = make_trap(hostile)
    try:
        yield hostile
    finally:
        server.close()
        for task in tuple(open_now):
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)
        await server.wait_closed()
