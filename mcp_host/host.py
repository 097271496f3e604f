"""All MCP servers behind the one port the core knows: starts, replaces and ends connections.

The SDK is imported when the first server is there, not before, and beside the event loop.
"""

import asyncio
import importlib
import logging
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway.domain.errors import ServerUnavailable, ToolHostError
from gateway.domain.tools import (
    Reloaded,
    ServerState,
    ServerStatus,
    ToolCall,
    ToolHit,
    ToolResult,
    ToolSpec,
)
from gateway.ports import Approver, Clock, ModelProvider
from gateway.ports.loading import load
from gateway.ports.signing_in import Person
from mcp_host.entry import Entry
from mcp_host.network_config import Transport
from mcp_host.registry import Registered, Registry, register, server_sha
from mcp_host.schema_cache import Known, SchemaCache, cache_key
from mcp_host.server_config import McpConfig, ServerConfig
from mcp_host.sign_ins import SignIns
from mcp_host.slots import Slots
from mcp_host.stderr import StderrLog, WriteLine, no_log
from mcp_host.transports.factory import link_opener
from mcp_host.transports.guard import ProcessGuard

if TYPE_CHECKING:
    from mcp_host.connection import Agreed
    from mcp_host.connections import Connections

logger = logging.getLogger(__name__)

RELOAD_SECONDS: Final = 30.0

_SDK_USER: Final = "mcp_host.dispatch"
"""The module whose import brings in the SDK, and everything that a call needs."""

LoadServers = Callable[[], Mapping[str, ServerConfig]]
"""Reads the servers' configuration anew; raises `ConfigError` when it cannot be used."""


@asynccontextmanager
async def open_host(
    servers: Mapping[str, ServerConfig],
    *,
    mcp: McpConfig,
    clock: Clock,
    stderr_log: Path | None,
    version: str,
    reload: LoadServers,
    on_demand: bool = False,
    models: ModelProvider | None = None,
    schema_cache: Path | None = None,
    tokens: Path | None = None,
) -> AsyncGenerator["McpHost"]:
    """Start connecting the enabled servers and yield the host at once; all are gone afterwards.

    With `on_demand` none is connected, and the SDK not loaded, before `connect` or the first wait
    for the servers. `models` answers servers that ask for our model. Their standard error goes to
    `stderr_log`, None keeps only the last lines; what they offer is remembered in `schema_cache`.
    Who is signed in to them is in the directory `tokens`, None for nobody.
    """
    log = StderrLog(stderr_log) if stderr_log is not None else None
    try:
        async with ProcessGuard() as guard, _remembering(schema_cache) as cache:
            host = McpHost(
                mcp=mcp,
                clock=clock,
                guard=guard,
                version=version,
                load=reload,
                log=log,
                models=models,
                cache=cache,
                sign_ins=SignIns(tokens, clock),
            )
            try:
                if not on_demand:
                    host.connect()
                host.start(servers)
                yield host
            finally:
                await host.close()
    finally:
        if log is not None:
            log.close()


class McpHost:
    """Implements `gateway.ports.ToolHost`; made by `open_host`."""

    def __init__(
        self,
        *,
        mcp: McpConfig,
        clock: Clock,
        guard: ProcessGuard,
        version: str,
        load: LoadServers,
        log: StderrLog | None,
        models: ModelProvider | None,
        cache: SchemaCache,
        sign_ins: SignIns,
    ) -> None:
        self._mcp = mcp
        self._clock = clock
        self._guard = guard
        self._version = version
        self._load = load
        self._log = log
        self._models = models
        self._cache = cache
        self._sign_ins = sign_ins
        self._slots = Slots(mcp.discovery_concurrency)
        self._servers: dict[str, Entry] = {}
        self._registry = Registry()
        self._published: tuple[Registered, ...] = ()
        self._warned: set[str] = set()
        self._reloading = asyncio.Lock()
        self._loading = asyncio.Lock()
        self._loaded = False
        self._wanted = asyncio.Event()
        self._nudges: set[asyncio.Task[None]] = set()

    # --- gateway.ports.ToolHost -------------------------------------------------

    def tools(self) -> Sequence[ToolSpec]:
        """Every registered tool, by alias."""
        return self._registry.tools()

    def find(self, name: str) -> ToolSpec | None:
        """Find by alias, by the single-underscore form, or by an unambiguous tool name."""
        return self._registry.find(name)

    def search(self, query: str, *, limit: int) -> Sequence[ToolHit]:
        """Rank the registered tools for a query, best first."""
        return self._registry.search(query, limit=limit)

    def servers(self) -> Sequence[ServerStatus]:
        """One status for each configured server, in the order of the configuration."""
        return tuple(server.status(self._registry) for server in self._servers.values())

    async def wait_ready(self, seconds: float, *, servers: Collection[str] | None = None) -> None:
        """Return when the tools of these servers, or all, are known or they are parked.

        It takes at most `seconds`.
        """
        self.connect()
        waits = [
            server.settled()
            for name, server in self._servers.items()
            if servers is None or name in servers
        ]
        await _within(seconds, waits)

    async def call(self, call: ToolCall, approver: Approver) -> ToolResult:
        """Run one call through filter, trust gate, transport and sanitiser."""
        self.connect()
        await self._load_sdk()
        from mcp_host.dispatch import Dispatch

        dispatch = Dispatch(
            find=self.find,
            config=self._config,
            connect=self._connect,
            tokens=self._sign_ins.sent,
        )
        return await dispatch.call(call, approver)

    async def reload(self, server: str | None = None) -> Reloaded:
        """Apply the configuration as it is now; a named server is reconnected in any case.

        Parked servers are tried at once, ready ones list their tools again. Takes at most
        `RELOAD_SECONDS`; what is not there by then goes on by itself.

        Raises:
            ConfigError: It cannot be used; everything stays as it was.
        """
        self.connect()
        async with self._reloading:
            wanted = self._load()
            before = {name: known.config for name, known in self._servers.items()}
            added = tuple(name for name in wanted if name not in before)
            removed = tuple(name for name in before if name not in wanted)
            changed = tuple(
                name for name in wanted if name in before and wanted[name] != before[name]
            )
            kept = [name for name in before if name in wanted and name not in changed]
            await self._stop((*removed, *changed))
            for name in removed:
                self._cache.forget(name)
            self.start({name: wanted[name] for name in (*added, *changed)})
            self._servers = {name: self._servers[name] for name in wanted}
            self._publish()
            waits = [self._servers[name].settled() for name in (*added, *changed)]
            waits += [
                self._servers[name].nudge(reconnect=server == name)
                for name in kept
                if server in {None, name}
            ]
            await _within(RELOAD_SECONDS, waits)
            unknown = ((server, "is not configured"),) if server and server not in wanted else ()
            return Reloaded(
                added=added, removed=removed, changed=changed, parked=(*self._parked(), *unknown)
            )

    async def sign_in(self, server: str, person: Person) -> None:
        """Sign a person in to a server, and connect to it; see `gateway.ports.SigningIn`.

        Raises:
            ToolHostError: It failed, or the server wants no sign-in.
        """
        known = self._servers.get(server)
        if known is None:
            raise ToolHostError(server, "is not configured")
        document = self._mcp.client_metadata_url
        await self._sign_ins.sign_in(server, known.config, person, document_url=document)
        self.look_at_sign_ins()

    def look_at_sign_ins(self) -> None:
        """Take up logins and logouts of other processes; returns at once, and asks nobody."""
        for name, server in self._servers.items():
            if not self._sign_ins.changed(name, server.config):
                continue
            login = self._sign_ins.login(name, server.config)
            server.key = cache_key(server.config, identity=login)
            logger.info("server %s: %s", name, "somebody signed in" if login else "signed out")
            nudge = server.nudge(reconnect=server.state is ServerState.READY)
            task = asyncio.create_task(nudge, name=f"signed in:{name}")
            self._nudges.add(task)
            task.add_done_callback(self._nudges.discard)

    async def wait_started(self, seconds: float) -> None:
        """Return when every server that does not sleep was tried, at the latest in `seconds`."""
        self.connect()
        await _within(seconds, [server.started() for server in self._servers.values()])

    # --- for a check of one server ------------------------------------------------

    async def try_server(self, name: str) -> "Agreed":
        """Return what a server speaks, once its first try has ended; it is not tried again for this.

        Raises:
            ServerUnavailable: That try failed, or the server is not enabled.
        """
        self.connect()
        connection = await self._servers[name].tried()
        if connection is None:
            raise ServerUnavailable(name, "it is not enabled", sent=False)
        if connection.agreed is None or connection.state is not ServerState.READY:
            raise ServerUnavailable(name, connection.reason, sent=False)
        return connection.agreed

    async def try_call(self, name: str) -> None:
        """Make a call without an effect to a server that was tried: it shows that a sign-in is taken.

        Raises:
            ToolHostError: The server lets nobody call who is signed in as we are, or says nothing.
        """
        connection = await self._servers[name].tried()
        if connection is None:
            raise ServerUnavailable(name, "it is not enabled", sent=False)
        # Imported when it is wanted: it brings in the SDK.
        from mcp_host.oauth.proof import show_that_calls_are_let_by

        await show_that_calls_are_let_by(connection)

    # --- for the cadence of a process ----------------------------------------------

    async def probe(self) -> None:
        """Have each parked server tried whose time for that has come; returns at once."""
        for server in self._servers.values():
            if server.connection is not None:
                server.connection.probe_if_due()

    async def relist(self) -> None:
        """Have the ready servers over a network list their tools again; returns at once.

        The stream that tells of changes may have ended unnoticed; that of a process ends with it.
        """
        for server in self._servers.values():
            remote = server.config.transport is not Transport.STDIO
            if remote and server.connection is not None and server.state is ServerState.READY:
                server.connection.refresh()

    # --- for who opens it ---------------------------------------------------------

    def connect(self) -> None:
        """Let the servers be connected from now on; returns at once."""
        self._wanted.set()

    def start(self, servers: Mapping[str, ServerConfig]) -> None:
        """Add servers and connect those that are enabled once they are wanted; returns at once."""
        for name, config in servers.items():
            key = cache_key(config, identity=self._sign_ins.login(name, config))
            server = Entry(
                name=name,
                config=config,
                since=self._clock.now(),
                key=key,
                known=self._cache.find(name, key),
                asks=self._cache.asks(name, server_sha(config)),
            )
            self._servers[name] = server
            if not config.enabled:
                continue
            server.owner = asyncio.create_task(self._own(server), name=f"server:{name}")
            server.owner.add_done_callback(_say_if_broken)
        self._publish()

    async def close(self) -> None:
        """End every connection."""
        for nudge in tuple(self._nudges):
            nudge.cancel()
        await self._stop(tuple(self._servers))
        self._registry.close()

    # --- inside -------------------------------------------------------------------

    async def _own(self, server: Entry) -> None:
        try:
            await self._wanted.wait()
            if server.sleeps:
                await server.woken.wait()
            server.connections = await self._connections_to(server)
        finally:
            server.made.set()
        await server.connections.run()

    async def _load_sdk(self) -> None:
        # It takes most of a second, and people are talked to meanwhile. One thread is enough.
        async with self._loading:
            if not self._loaded:
                await load(importlib.import_module, _SDK_USER)
                self._loaded = True

    async def _connections_to(self, server: Entry) -> "Connections":
        await self._load_sdk()
        from mcp_host.connection import Connection
        from mcp_host.connections import Connections, config_of_another
        from mcp_host.shared import Shared

        opener = link_opener(
            server.name,
            server.config,
            guard=self._guard,
            write_stderr=self._stderr_writer(server.name),
            tokens=self._sign_ins.keeper(server.name, server.config),
        )
        shared = Shared(
            server.name, server.config, clock=self._clock, models=self._models, asks=server.asks
        )

        def make(number: int) -> Connection:
            return Connection(
                server.name,
                server.config if number == 1 else config_of_another(server.config),
                open_link=opener,
                slots=self._slots,
                clock=self._clock,
                version=self._version,
                probe_interval=self._mcp.probe_interval,
                on_change=self._publish,
                shared=shared,
                known=server.known,
                number=number,
            )

        pause = self._mcp.probe_interval
        return Connections(make(1), shared=shared, make=make, clock=self._clock, pause=pause)

    def _config(self, name: str) -> ServerConfig | None:
        server = self._servers.get(name)
        return server.config if server is not None and server.config.enabled else None

    async def _connect(self, name: str) -> "Connections | None":
        self.connect()
        server = self._servers.get(name)
        return await server.woken_up() if server is not None else None

    def _stderr_writer(self, name: str) -> WriteLine:
        return self._log.writer(name) if self._log is not None else no_log

    async def _stop(self, names: Sequence[str]) -> None:
        owners = [self._servers[name].owner for name in names]
        running = [owner for owner in owners if owner is not None]
        for owner in running:
            owner.cancel()
        if running:
            await asyncio.wait(running)
        for name in names:
            del self._servers[name]
            await self._sign_ins.close(name)

    def _parked(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (name, server.connection.reason)
            for name, server in self._servers.items()
            if server.connection is not None and server.state is ServerState.PARKED
        )

    def _publish(self) -> None:
        """Put a new registry in place of the old one when a list of tools is another."""
        registered: list[Registered] = []
        for name, server in self._servers.items():
            catalog = server.catalog
            if catalog is not None and catalog is not server.published:
                server.published = catalog
                server.registered = register(name, server.config, catalog)
            if server.registered is not None:
                registered.append(server.registered)
            self._remember(server)
        if [id(item) for item in registered] == [id(item) for item in self._published]:
            return
        self._published = tuple(registered)
        stale, self._registry = self._registry, Registry(registered, before=self._registry)
        stale.close()
        for warning in self._registry.collisions:
            if warning not in self._warned:
                self._warned.add(warning)
                logger.warning("%s", warning)

    def _remember(self, server: Entry) -> None:
        connection = server.connection
        if connection is None or connection.catalog is None or connection.era is None:
            return
        known = Known(catalog=connection.catalog, era=connection.era.value)
        asks = server.connections is not None and server.connections.shared.asks
        if connection.state is not ServerState.READY or (known, asks) == (
            server.known,
            server.asks,
        ):
            return
        server.known, server.asks = known, asks
        sha = server_sha(server.config) if asks else ""
        self._cache.keep(server.name, server.key, known, asks=sha)


@asynccontextmanager
async def _remembering(path: Path | None) -> AsyncGenerator[SchemaCache]:
    cache = SchemaCache(path)
    writer = asyncio.create_task(cache.run(), name="schema cache")
    try:
        yield cache
    finally:
        writer.cancel()
        await asyncio.wait({writer})
        await asyncio.to_thread(cache.write)


def _say_if_broken(owner: asyncio.Task[None]) -> None:
    if not owner.cancelled() and owner.exception() is not None:
        logger.error("%s ended", owner.get_name(), exc_info=owner.exception())


async def _within(seconds: float, waits: Iterable[Coroutine[Any, Any, None]]) -> None:
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*waits)
    except TimeoutError:
        pass
