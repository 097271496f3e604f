"""Standard input and output as streams of messages, read and written on the event loop itself.

No thread waits for input, so that a call costs less and a signal ends the process at any time.
Files and terminals cannot be read like this: for them the SDK's own transport does.
"""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from mcp_host.transports.base import LinkStream
from mcp_host.transports.lines import LineSplitter, TooLong
from mcp_host.transports.messages import MAX_MESSAGE, encode, parse

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

    Streams = tuple["ReadStream[SessionMessage | Exception]", "WriteStream[SessionMessage]"]

READ_BYTES: Final = 1 << 16


class BadLine(Exception):
    """A line of the client that is no message; what it said is not repeated."""


@asynccontextmanager
async def open_pipes() -> AsyncGenerator["Streams"]:
    """Take standard input and output for the messages alone, until the block ends.

    Meanwhile whatever else prints or reads there gets standard error and the end of a file.
    """
    if not _are_pipes():
        async with stdio_server() as (incoming, outgoing):
            yield incoming, outgoing
        return
    sys.stdout.flush()
    given, taken = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_BYTES)
    source, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(given, "rb", buffering=0)
    )
    flow = _Flow()
    sink, _ = await loop.connect_write_pipe(lambda: flow, os.fdopen(taken, "wb", buffering=0))
    try:
        yield _Incoming(reader), _Outgoing(sink, flow)
    finally:
        source.close()
        sink.close()


def _are_pipes() -> bool:
    given, taken = os.fstat(0), os.fstat(1)
    if (given.st_dev, given.st_ino) == (taken.st_dev, taken.st_ino):
        # One socket for both: what arrives on it would look like the end of the other direction.
        return False
    modes = (given.st_mode, taken.st_mode)
    return all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes)


class _Incoming(LinkStream):
    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._splitter = LineSplitter(limit=MAX_MESSAGE)
        self._lines: list[bytes | TooLong] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while True:
            while not self._lines:
                chunk = await self._reader.read(READ_BYTES)
                self._lines = self._splitter.feed(chunk) if chunk else self._splitter.finish()
                self._lines.reverse()
                if not chunk and not self._lines:
                    raise StopAsyncIteration
            line = self._lines.pop()
            if isinstance(line, bytes) and not line.strip():
                continue
            message = None if isinstance(line, TooLong) else parse(line)
            return BadLine("no message") if message is None else SessionMessage(message)

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None


class _Flow(asyncio.BaseProtocol):
    """Whether the client reads what it is sent."""

    def __init__(self) -> None:
        self._may_write = asyncio.Event()
        self._may_write.set()
        self.broken = False

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.broken = True
        self._may_write.set()

    async def drained(self) -> None:
        await self._may_write.wait()


class _Outgoing(LinkStream):
    def __init__(self, sink: asyncio.WriteTransport, flow: _Flow) -> None:
        self._sink = sink
        self._flow = flow

    async def send(self, item: SessionMessage, /) -> None:
        if self._flow.broken:
            raise anyio.BrokenResourceError
        self._sink.write(encode(item.message) + b"\n")
        await self._flow.drained()
