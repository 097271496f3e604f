"""uvicorn on a socket that we bound ourselves; signals, and when to end, are the process's own business."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import uvicorn

from gateway.control.binding import bound_socket
from gateway.control.protocol import MAX_CONNECTIONS, ControlProtocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HEADER_BYTES: Final = 16_384
KEEP_ALIVE_SECONDS: Final = 5
ENDING_SECONDS: Final = 2
"""What requests under way get when the server ends."""


class _Server(uvicorn.Server):
    """A server that is told when to end, and sleeps until then."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._ending = asyncio.Event()

    def end(self) -> None:
        self._ending.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        await self._ending.wait()


@asynccontextmanager
async def serving(
    app: "ASGIApp", path: Path, *, before_end: Callable[[], None]
) -> AsyncGenerator[None]:
    """Answer requests on the socket at `path` until the block ends; whoever calls this holds the home.

    `before_end` lets go of the streams that would never end by themselves.

    Raises:
        HomeError: The socket cannot be made.
    """
    with bound_socket(path) as bound:
        server = _Server(
            uvicorn.Config(
                app,
                http=ControlProtocol,
                ws="none",
                loop="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                backlog=MAX_CONNECTIONS,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=ENDING_SECONDS,
                h11_max_incomplete_event_size=HEADER_BYTES,
            )
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[bound]), name="control:server")
            await server.listening.wait()
            try:
                yield
            finally:
                before_end()
                server.end()
