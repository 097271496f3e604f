"""Waits on this machine for the browser that comes back from a sign-in (RFC 8252 section 7.3).

Listens to this machine alone, answers one request a connection, and shows nothing of what it was
sent. The first answer that is one is the last that is read.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import h11

from mcp_host.oauth.redirect import (
    Expected,
    Granted,
    LoginRefused,
    NotOurs,
    WrongState,
    read_redirect,
)

logger = logging.getLogger(__name__)

HEAD_BYTES: Final = 32 << 10
REQUEST_SECONDS: Final = 10.0
MAX_CONNECTIONS: Final = 16
FLUSH_SECONDS: Final = 1.0
"""How long a page that is being sent may take at the end."""

_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_ABSENT: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})
_TRIES: Final = 8
"""How many free ports are taken of which one may be somebody else's by IPv6."""

_PAGE: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Hermes Gateway</title><p>{text}</p>"
)
_HEADERS: Final = (
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("connection", "close"),
)

_TAKEN: Final = "The answer has arrived. You can close this page and go back to Hermes Gateway."
_REFUSED: Final = "The sign-in did not succeed. Hermes Gateway says why."
_OTHER: Final = "This is the answer to another sign-in. Nothing was signed in."
_NO_ANSWER: Final = "This is not the answer to a sign-in."
_OVER: Final = "This sign-in is over."


class NoPort(Exception):
    """None of the ports can be listened on; the text says which and what to do."""


class Listener:
    """Made by `listening`. `port` is where it waits."""

    def __init__(self, port: int, path: str, expected: Expected, hosts: frozenset[str]) -> None:
        self.port = port
        self._path = path
        self._expected = expected
        self._hosts = hosts
        self._answer: asyncio.Future[Granted] = asyncio.get_running_loop().create_future()
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[object]] = set()

    async def answer(self) -> Granted:
        """Return what the browser brought; there is no bound on the wait.

        Raises:
            WrongState: It was the answer to another login.
            LoginRefused: The authorization server said no, or another one answered.
        """
        return await asyncio.shield(self._answer)

    async def open(self, sockets: Iterable[socket.socket]) -> None:
        """Start answering."""
        for each in sockets:
            server = await asyncio.start_server(self._connected, sock=each, limit=HEAD_BYTES)
            self._servers.append(server)

    async def close(self) -> None:
        """Stop listening; a page under way is sent."""
        self._stop()
        if self._open:
            _, late = await asyncio.wait(self._open, timeout=FLUSH_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if not self._answer.done():
            self._answer.cancel()
        elif not self._answer.cancelled():
            # Also when the person was faster and nobody asked for it.
            self._answer.exception()

    def _stop(self) -> None:
        for server in self._servers:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= MAX_CONNECTIONS:
            writer.close()
            return
        self._open.add(task)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._exchange(reader, writer)
        except (TimeoutError, ConnectionError):
            logger.debug("sign-in: a browser went away, or said nothing")
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self._open.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        request = None
        try:
            request = await _request(reader, connection)
        except h11.RemoteProtocolError as error:
            status, text = HTTPStatus(error.error_status_hint), _NO_ANSWER
        else:
            if request is None:
                return
            status, text = self._judge(request)
        page = _PAGE.format(text=text).encode()
        response = h11.Response(
            status_code=status,
            reason=status.phrase.encode(),
            headers=[*_HEADERS, ("content-length", str(len(page)))],
        )
        body = b"" if request is not None and request.method == b"HEAD" else page
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            writer.write(connection.send(event) or b"")
        await writer.drain()

    def _judge(self, request: h11.Request) -> tuple[HTTPStatus, str]:
        """Return what to show, and take the answer when it is one."""
        headers = dict(request.headers)
        path, _, query = request.target.decode("latin-1").partition("?")
        if headers.get(b"host", b"").decode("latin-1").lower() not in self._hosts:
            # A name that somebody makes point here (DNS rebinding).
            return HTTPStatus.MISDIRECTED_REQUEST, _NO_ANSWER
        if path != self._path:
            return HTTPStatus.NOT_FOUND, _NO_ANSWER
        if request.method != b"GET":
            return HTTPStatus.METHOD_NOT_ALLOWED, _NO_ANSWER
        if headers.get(b"sec-fetch-mode", b"navigate") != b"navigate":
            # Something in another page asks for it, and not the person.
            return HTTPStatus.BAD_REQUEST, _NO_ANSWER
        if self._answer.done():
            return HTTPStatus.GONE, _OVER
        return self._take(query)

    def _take(self, query: str) -> tuple[HTTPStatus, str]:
        try:
            granted = read_redirect(self._expected, query)
        except NotOurs:
            return HTTPStatus.BAD_REQUEST, _NO_ANSWER
        except (WrongState, LoginRefused) as error:
            self._answer.set_exception(error)
            self._stop()
            shown = _OTHER if isinstance(error, WrongState) else _REFUSED
            return HTTPStatus.BAD_REQUEST, shown
        self._answer.set_result(granted)
        self._stop()
        return HTTPStatus.OK, _TAKEN


@asynccontextmanager
async def listening(
    ports: Sequence[int],
    path: str,
    expected: Expected,
    *,
    redirect_host: str = "127.0.0.1",
    proxied_uri: str | None = None,
) -> AsyncGenerator[Listener]:
    """Listen on the first of the ports that is free, until the end of the block; 0 is any.

    With the host `localhost` by IPv6 too, where there is any: a browser may take either.
    `proxied_uri` is the address of a proxy that leads here, which requests then carry as their host.

    Raises:
        NoPort: None is free.
    """
    async with AsyncExitStack() as stack:
        sockets = _bound(ports, both=redirect_host == "localhost")
        for each in sockets:
            stack.callback(each.close)
        port = int(sockets[0].getsockname()[1])
        listener = Listener(port, path, expected, _hosts(port, proxied_uri))
        stack.push_async_callback(listener.close)
        await listener.open(sockets)
        yield listener


def _bound(ports: Sequence[int], *, both: bool) -> list[socket.socket]:
    refusals: dict[int, str] = {}
    for port in ports:
        for _ in range(_TRIES if port == 0 else 1):
            try:
                return _bound_to(port, both=both)
            except OSError as error:
                refusals[port] = (error.strerror or str(error)).lower()
    named = ", ".join(f"{port or 'any'} ({why})" for port, why in refusals.items())
    raise NoPort(
        f"nothing can wait for the browser on port {named}: "
        "free it, or set oauth.redirect_port to another"
    )


def _bound_to(port: int, *, both: bool) -> list[socket.socket]:
    first = _listening_on(socket.AF_INET, "127.0.0.1", port)
    if not both:
        return [first]
    try:
        return [first, _listening_on(socket.AF_INET6, "::1", int(first.getsockname()[1]))]
    except OSError as error:
        if error.errno in _ABSENT:
            return [first]
        # Somebody else has it there, and would get the answer.
        first.close()
        raise


def _listening_on(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A port that an earlier login used is free again at once; two never have one at a time.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(MAX_CONNECTIONS)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def _hosts(port: int, proxied_uri: str | None) -> frozenset[str]:
    """Return what a request may name as its host."""
    found = {f"{host}:{port}" for host in _HOSTS}
    if port == _DEFAULT_PORTS["http"]:
        found.update(_HOSTS)
    if proxied_uri is not None:
        parts = urlsplit(proxied_uri)
        name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        own = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
        found |= {f"{name}:{own}"}
        if own == _DEFAULT_PORTS.get(parts.scheme):
            found.add(name)
    return frozenset(found)


async def _request(reader: asyncio.StreamReader, connection: h11.Connection) -> h11.Request | None:
    """Return the request of a connection, None when it ends without one."""
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        connection.receive_data(await reader.read(4_096))
