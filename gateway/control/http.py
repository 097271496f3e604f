"""One HTTP request over a Unix socket to a process of our own user. Knows no route."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

import h11

from gateway.control.peer import peer_of
from gateway.domain.errors import GatewayNotRunning, GatewayRefused

READ_BYTES: Final = 1 << 16
CONNECT_SECONDS: Final = 5.0


class Answer:
    """A response whose body is read as it comes."""

    def __init__(
        self, reader: asyncio.StreamReader, connection: h11.Connection, status: int
    ) -> None:
        self._reader = reader
        self._connection = connection
        self.status = status

    async def json(self) -> Mapping[str, Any]:
        """Return the whole body, an empty object when it is none.

        Raises:
            GatewayRefused: The connection broke.
        """
        raw = b"".join([piece async for piece in self._pieces()])
        try:
            value: object = json.loads(raw)
        except ValueError:
            return {}
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    async def lines(self) -> AsyncGenerator[Mapping[str, Any]]:
        """Return the objects of a stream, one a line, until it ends.

        Raises:
            GatewayRefused: The connection broke.
        """
        rest = b""
        async for piece in self._pieces():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                if line.strip():
                    yield json.loads(line)

    async def _pieces(self) -> AsyncGenerator[bytes]:
        while True:
            event = await _next(self._reader, self._connection)
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return


@asynccontextmanager
async def exchange(
    socket: Path, method: str, target: str, body: Mapping[str, Any] | None = None
) -> AsyncGenerator[Answer]:
    """Make one request on a connection of its own; leaving the block closes it.

    Raises:
        GatewayNotRunning: Nobody listens there.
        GatewayRefused: The connection broke before there was an answer.
    """
    reader, writer = await _connect(socket)
    try:
        connection = h11.Connection(h11.CLIENT)
        data = b"" if body is None else json.dumps(body).encode("ascii")
        headers = [
            ("host", "gateway"),
            ("connection", "close"),
            ("content-type", "application/json"),
            ("content-length", str(len(data))),
        ]
        events = (
            h11.Request(method=method, target=target, headers=headers),
            h11.Data(data=data),
            h11.EndOfMessage(),
        )
        # A server that refuses without reading may be gone already; then its answer says why.
        with suppress(OSError):
            writer.write(b"".join(connection.send(event) or b"" for event in events))
            await writer.drain()
        event = await _next(reader, connection)
        while isinstance(event, h11.InformationalResponse):
            event = await _next(reader, connection)
        if not isinstance(event, h11.Response):
            raise _broken()
        yield Answer(reader, connection, event.status_code)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _connect(socket: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_unix_connection(socket)
    except (OSError, TimeoutError) as error:
        raise GatewayNotRunning(str(socket.parent)) from error
    # What listens there may be anybody's, when the directory is not ours alone.
    if peer_of(writer.get_extra_info("socket")).uid != os.getuid():
        writer.close()
        raise GatewayNotRunning(str(socket.parent))
    return reader, writer


async def _next(reader: asyncio.StreamReader, connection: h11.Connection) -> object:
    try:
        while (event := connection.next_event()) is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_BYTES))
    except (OSError, h11.ProtocolError) as error:
        raise _broken() from error
    if isinstance(event, h11.ConnectionClosed):
        raise _broken()
    return event


def _broken() -> GatewayRefused:
    return GatewayRefused("gateway_timeout", "the gateway ended before it answered")
