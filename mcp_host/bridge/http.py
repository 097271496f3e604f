"""The bridge over Streamable HTTP: for clients that hold the token, on an address that is loopback by default.

What a browser can be made to send is refused before anything is read: a host that is not ours (a
rebound name), an origin that is not ours, and whoever does not know the token.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from hmac import compare_digest
from typing import Any, Final
from urllib.parse import urlsplit

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_host.bridge.address import Address, CannotListen
from mcp_host.bridge.signals import ending_signals

logger = logging.getLogger(__name__)

PATH: Final = "/mcp"
BACKLOG: Final = 64


class Guard:
    """Lets requests through to the application that come from a client which may ask."""

    def __init__(self, app: ASGIApp, *, address: Address, token: str) -> None:
        self._app = app
        self._address = address
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or say why not; the lifespan of the application passes."""
        if scope["type"] == "http":
            refusal = self._refusal(dict(scope["headers"]))
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, headers: dict[bytes, bytes]) -> JSONResponse | None:
        if not self._address.is_ours(_host(headers.get(b"host", b""))):
            return _refused(421, "this host is not served here")
        origin = headers.get(b"origin")
        if origin is not None and not self._address.is_ours(_origin(origin)):
            return _refused(403, "this origin may not ask")
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not compare_digest(given.strip(), self._token):
            return _refused(401, "a bearer token is needed", {"www-authenticate": "Bearer"})
        return None


def http_app(server: Server[dict[str, Any]]) -> ASGIApp:
    """Return the protocol's own part, which asks nobody who they are."""
    # The guard has looked at host and origin.
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return server.streamable_http_app(streamable_http_path=PATH, transport_security=unguarded)


async def serve_http(
    server: Server[dict[str, Any]],
    *,
    address: Address,
    token: str,
    listening: Callable[[str], None],
) -> signal.Signals:
    """Answer until a signal comes, which is returned; `listening` is told the URL.

    Raises:
        CannotListen: The address is taken, or none of ours.
    """
    app = Guard(http_app(server), address=address, token=token)
    with _bound(address) as listener, ending_signals() as received:
        async with _running(app, listener) as running:
            listening(_url(address, listener))
            await asyncio.wait({received, running}, return_when=asyncio.FIRST_COMPLETED)
        return received.result() if received.done() else signal.SIGTERM


class _Server(uvicorn.Server):
    """A server that leaves the signals to the process, and sleeps until it is told to end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    def end(self) -> None:
        self._ending.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        await self._ending.wait()


@asynccontextmanager
async def _running(app: ASGIApp, listener: socket.socket) -> AsyncGenerator[asyncio.Task[None]]:
    server = _Server(
        uvicorn.Config(
            app,
            ws="none",
            loop="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            # A wait of minutes is no reason to stay: its client asks again with its cursor.
            timeout_graceful_shutdown=0,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="bridge:http")
    try:
        yield serving
    finally:
        server.end()
        await serving


@contextmanager
def _bound(address: Address) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address.host, address.port))
            # From here on nobody is refused a connection: whoever is told the URL may use it.
            listener.listen(BACKLOG)
        except OSError as error:
            raise CannotListen(address, error.strerror or str(error)) from error
        yield listener
    finally:
        listener.close()


def _url(address: Address, listener: socket.socket) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{listener.getsockname()[1]}{PATH}"


def _host(header: bytes) -> str:
    return _name_of(f"//{header.decode('latin-1')}")


def _origin(header: bytes) -> str:
    text = header.decode("latin-1")
    return _name_of(text) if text.startswith(("http://", "https://")) else ""


def _name_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _refused(status: int, why: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": why}, status_code=status, headers=headers)
