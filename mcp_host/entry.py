"""One configured server as the host holds it: asleep until it is wanted, then a connection.

Does without the SDK, so that a server nobody uses costs nothing but its tools.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.domain.tools import ServerState, ServerStatistics, ServerStatus
from mcp_host.catalog import Catalog
from mcp_host.registry import Registered, Registry
from mcp_host.schema_cache import Known
from mcp_host.server_config import ServerConfig

if TYPE_CHECKING:
    from mcp_host.connection import Connection
    from mcp_host.connections import Connections


@dataclass(slots=True, kw_only=True)
class Entry:
    """A server of the configuration; it has connections as soon as it was wanted once.

    `known` is what it offered in an earlier process, `key` finds that in the cache; `asks`: it put
    a question to a person then.
    """

    name: str
    config: ServerConfig
    since: datetime
    key: str = ""
    known: Known | None = None
    asks: bool = False
    connections: "Connections | None" = None
    owner: asyncio.Task[None] | None = None
    published: Catalog | None = None
    registered: Registered | None = None
    made: asyncio.Event = field(default_factory=asyncio.Event)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def connection(self) -> "Connection | None":
        """The one that lists its tools, None before it was wanted."""
        return self.connections.first if self.connections is not None else None

    @property
    def sleeps(self) -> bool:
        """True for a lazy server whose tools are known and that nobody has used yet."""
        return self.config.lazy and self.known is not None and not self.woken.is_set()

    @property
    def catalog(self) -> Catalog | None:
        """What it offers, as far as that is known."""
        if self.connection is not None:
            return self.connection.catalog
        return self.known.catalog if self.known is not None and self.config.enabled else None

    @property
    def state(self) -> ServerState:
        """Where it is in its life."""
        if self.connection is not None:
            return self.connection.state
        if not self.config.enabled:
            return ServerState.DISABLED
        return ServerState.LAZY if self.sleeps else ServerState.CONNECTING

    async def woken_up(self) -> "Connections | None":
        """Wake it and return its connections, which need not be ready; None when it is disabled."""
        if self.owner is not None:
            self.woken.set()
            await self.made.wait()
        return self.connections

    async def settled(self) -> None:
        """Return when its tools are known, or it is parked or closed; at once when disabled."""
        if self.owner is None or self.catalog is not None:
            return
        await self.made.wait()
        if self.connection is not None:
            await self.connection.settled()

    async def started(self) -> None:
        """Return when a try of it has ended; at once when it sleeps or is disabled."""
        if self.owner is None or self.sleeps:
            return
        await self.made.wait()
        if self.connection is not None:
            await self.connection.tried()

    async def tried(self) -> "Connection | None":
        """Wake it and return the connection once a try of it has ended, None when disabled."""
        connections = await self.woken_up()
        if connections is not None:
            await connections.first.tried()
        return self.connection

    async def nudge(self, *, reconnect: bool) -> None:
        """Have a parked one try now and a ready one list its tools; or have it connect anew."""
        if not reconnect and self.state is ServerState.LAZY:
            return
        connections = await self.woken_up()
        if connections is None:
            return
        if reconnect:
            await connections.reconnect()
        elif connections.first.state is ServerState.READY:
            connections.first.refresh()
        else:
            await connections.first.try_now()

    def status(self, registry: Registry) -> ServerStatus:
        """Return its line of `/mcp`."""
        connection = self.connection
        known = registry.notes(self.name)
        return ServerStatus(
            name=self.name,
            state=self.state,
            since=self.since if connection is None else connection.since,
            tools=len(registry.of_server(self.name)),
            reason="" if connection is None else connection.reason,
            next_probe_at=None if connection is None else connection.next_probe_at,
            notes=known if connection is None else (*known, *connection.notes),
            lazy=self.config.lazy,
            needs_login=connection is not None and connection.needs_login,
            selection=registry.selection(self.name),
            statistics=(
                ServerStatistics() if self.connections is None else self.connections.statistics
            ),
        )
