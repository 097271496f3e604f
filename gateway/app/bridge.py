"""`hermes mcp serve`: the bridge over the store of a home and its running gateway, if there is one."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.app.lean import UNUSED_ON_PIPES, left_out
from gateway.app.parts import program_version
from gateway.domain.canonical import CanonicalJson
from gateway.domain.errors import ControlError

if TYPE_CHECKING:
    import signal

    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.control.client import SocketClient
    from mcp_host.bridge.address import Address
    from mcp_host.bridge.ports import BridgePorts
    from mcp_host.bridge.server import Bridge
    from store.readers import OpenReaders

logger = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 2.0
"""Between looks for a gateway; meanwhile commits are seen in the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Serving over HTTP: where, for whom, and who is told the URL."""

    address: "Address"
    token: str
    listening: Callable[[str], None]


async def serve_bridge(
    home: "Home",
    loaded: "Loaded",
    *,
    environ: Mapping[str, str],
    working: Path,
    listen: Listen | None = None,
) -> "signal.Signals | None":
    """Serve on standard input and output until that ends, or over HTTP; return what signal came.

    Raises:
        CannotListen: The address is taken, or none of ours.
    """
    if listen is None:
        with left_out(UNUSED_ON_PIPES):
            from mcp_host.bridge.stdio import serve_stdio

        async with open_bridge(home, loaded, environ=environ, working=working) as bridge:
            return await serve_stdio(bridge.build())
    from mcp_host.bridge.http import serve_http

    async with open_bridge(home, loaded, environ=environ, working=working) as bridge:
        return await serve_http(
            bridge.build(),
            address=listen.address,
            token=listen.token,
            listening=listen.listening,
        )


@asynccontextmanager
async def open_bridge(
    home: "Home", loaded: "Loaded", *, environ: Mapping[str, str], working: Path
) -> AsyncGenerator["Bridge"]:
    """Give the bridge the ports of a home, and tell it of every commit."""
    from gateway.control.client import SocketClient
    from gateway.runtime.clock import SystemClock
    from mcp_host.bridge.server import Bridge
    from store.readers import open_readers

    client = SocketClient.of(home.path, environ=environ)
    async with AsyncExitStack() as stack:
        readers = await stack.enter_async_context(
            open_readers(home.state_db, clock=SystemClock(), late=True)
        )
        ports = _ports(home, loaded, readers, client, environ=environ, working=working)
        bridge = Bridge(ports, loaded.config.mcp_serve, version=program_version())
        await bridge.begin()
        told = asyncio.create_task(_tell(client, readers), name="bridge:commits")
        try:
            yield bridge
        finally:
            told.cancel()
            await asyncio.wait([told])


def _ports(
    home: "Home",
    loaded: "Loaded",
    readers: "OpenReaders",
    client: "SocketClient",
    *,
    environ: Mapping[str, str],
    working: Path,
) -> "BridgePorts":
    from gateway.config.media import MediaFolder
    from gateway.runtime.redact import redacted
    from mcp_host.bridge.folders import Folders, default_folders
    from mcp_host.bridge.ports import BridgePorts

    redact, named = loaded.config.approvals.redact, loaded.config.mcp_serve.folders

    def shown(arguments: CanonicalJson) -> object:
        return redacted(json.loads(arguments), redact=redact)

    user_home = Path(environ.get("HOME") or "/")
    if named is None:
        allowed = default_folders(working=working, user_home=user_home, media=home.media)
    else:
        allowed = tuple(_folder(name, user_home=user_home, working=working) for name in named)
    return BridgePorts(
        events=readers.ports.events,
        conversations=readers.ports.conversations,
        questions=readers.ports.questions,
        channels=readers.ports.channels,
        gateway=client,
        media=MediaFolder(home),
        folders=Folders(allowed, working=working),
        shown=shown,
    )


def _folder(name: str, *, user_home: Path, working: Path) -> Path:
    return user_home / name[2:] if name.startswith("~/") else working / name


async def _tell(client: "SocketClient", readers: "OpenReaders") -> None:
    """Ring for each commit: as the gateway tells of them, and while none runs as the files change."""
    async with asyncio.TaskGroup() as tasks:
        watching: asyncio.Task[None] | None = None
        while True:
            if watching is None or watching.done():
                watching = tasks.create_task(readers.watch(), name="bridge:files")
            if client.is_there and await _follow(client, readers.notify, watching):
                watching = None
                continue
            await asyncio.sleep(AGAIN_SECONDS)


async def _follow(
    client: "SocketClient", notify: Callable[[], None], watching: asyncio.Task[None]
) -> bool:
    """Ring as the gateway says; True when it said anything, and has ended since."""
    heard = False
    try:
        async for _ in client.events():
            if not heard:
                heard = True
                watching.cancel()
                logger.info("the gateway tells of what happens")
            notify()
    except ControlError as error:
        logger.debug("no hints from a gateway: %s", error)
    if heard:
        logger.info("the gateway tells of nothing more")
    return heard
