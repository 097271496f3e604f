"""`hermes mcp serve`: the bridge over the store of a home and its running gateway, if there is one."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.app.commits import telling
from gateway.app.lean import UNUSED_ON_PIPES, left_out
from gateway.app.parts import program_version
from gateway.domain.canonical import CanonicalJson

if TYPE_CHECKING:
    import signal

    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.control.client import SocketClient
    from gateway.ports import Readers
    from mcp_host.bridge.address import Address
    from mcp_host.bridge.modes import ChannelMode
    from mcp_host.bridge.ports import BridgePorts
    from mcp_host.bridge.server import Bridge


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Serving over HTTP: where, for whom, and who is told the URL."""

    address: "Address"
    token: str
    listening: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a bridge is served: its home with the configuration, and the process around it."""

    home: "Home"
    loaded: "Loaded"
    environ: Mapping[str, str]
    working: Path


async def serve_on_pipes(site: Site, *, channel: "ChannelMode") -> "signal.Signals | None":
    """Serve on standard input and output until that ends or a signal comes, which is returned."""
    from mcp_host.bridge.modes import ChannelMode

    with left_out(UNUSED_ON_PIPES):
        from mcp_host.bridge.stdio import serve_stdio

    async with _open(site) as opened:
        server = opened.bridge.build()
        if channel is ChannelMode.OFF:
            return await serve_stdio(server)
        from gateway.app.senders import TrustedSenders
        from mcp_host.bridge.channel import CAPABILITIES, Channel

        senders = TrustedSenders(
            site.loaded.config, opened.readers.pairings, home=site.home, environ=site.environ
        )
        attached = Channel(opened.ports, senders, channel)
        attached.attach(server)
        pushing = asyncio.create_task(attached.run(opened.bridge.following), name="bridge:channel")
        try:
            return await serve_stdio(server, experimental=CAPABILITIES)
        finally:
            pushing.cancel()
            await asyncio.wait([pushing])


async def serve_on_http(site: Site, listen: Listen) -> "signal.Signals":
    """Serve over HTTP until a signal comes, which is returned.

    Raises:
        CannotListen: The address is taken, or none of ours.
    """
    from mcp_host.bridge.http import serve_http

    async with _open(site) as opened:
        return await serve_http(
            opened.bridge.build(),
            address=listen.address,
            token=listen.token,
            listening=listen.listening,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    bridge: "Bridge"
    ports: "BridgePorts"
    readers: "Readers"


@asynccontextmanager
async def _open(site: Site) -> AsyncGenerator[_Opened]:
    """Give the bridge the ports of a home, and tell it of every commit."""
    from gateway.control.client import SocketClient
    from gateway.runtime.clock import SystemClock
    from mcp_host.bridge.server import Bridge
    from store.readers import open_readers

    client = SocketClient.of(site.home.path, environ=site.environ)
    async with AsyncExitStack() as stack:
        readers = await stack.enter_async_context(
            open_readers(site.home.state_db, clock=SystemClock(), late=True)
        )
        ports = _ports(site, readers.ports, client)
        bridge = Bridge(ports, site.loaded.config.mcp_serve, version=program_version())
        await bridge.begin()
        await stack.enter_async_context(telling(client, readers))
        yield _Opened(bridge=bridge, ports=ports, readers=readers.ports)


def _ports(site: Site, readers: "Readers", client: "SocketClient") -> "BridgePorts":
    from gateway.config.media import MediaFolder
    from gateway.runtime.redact import redacted
    from mcp_host.bridge.folders import Folders, default_folders
    from mcp_host.bridge.ports import BridgePorts

    config, working = site.loaded.config, site.working
    redact, named = config.approvals.redact, config.mcp_serve.folders

    def shown(arguments: CanonicalJson) -> object:
        return redacted(json.loads(arguments), redact=redact)

    user_home = Path(site.environ.get("HOME") or "/")
    if named is None:
        allowed = default_folders(working=working, user_home=user_home, media=site.home.media)
    else:
        allowed = tuple(_folder(name, user_home=user_home, working=working) for name in named)
    return BridgePorts(
        events=readers.events,
        conversations=readers.conversations,
        questions=readers.questions,
        channels=readers.channels,
        gateway=client,
        media=MediaFolder(site.home),
        folders=Folders(allowed, working=working),
        shown=shown,
    )


def _folder(name: str, *, user_home: Path, working: Path) -> Path:
    return user_home / name[2:] if name.startswith("~/") else working / name
