"""One server's connection: a single task opens it, keeps it, loses it and tries again.

Callers use the session from their own tasks, so that what cancels one call touches no other.
Knows no approvals, names or filters.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from mcp import MCPError

from gateway.domain.errors import ServerParked, ServerUnavailable, ToolHostError
from gateway.domain.tools import ServerState
from gateway.ports import Clock, ModelProvider
from gateway.telemetry import agent_log
from mcp_host.calls import Calls
from mcp_host.catalog import Catalog, read_catalog
from mcp_host.errors import reason_of
from mcp_host.mailbox import Mailbox, Note
from mcp_host.negotiation import negotiate
from mcp_host.sampler import Sampler
from mcp_host.server_config import ServerConfig, Trust
from mcp_host.session import Era, HostSession
from mcp_host.slots import Slots
from mcp_host.transports.base import Link, OpenLink
from mcp_host.tries import Ended, Ending, Tries

logger = logging.getLogger(__name__)

DEBOUNCE_SECONDS: Final = 0.25
REFRESH_SECONDS: Final = 20.0
LISTEN_AGAIN_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """What a server speaks, and how many seconds it took from its start to agree on that."""

    era: Era
    protocol_version: str
    seconds: float


class Connection:
    """The connection of one server entry; `run` is its owner, everything else only asks.

    `state`, `reason`, `since`, `next_probe_at`, `agreed` and `catalog` are for reading;
    `on_change` is called after one of them changed. A parked server keeps the catalog it had.
    """

    def __init__(
        self,
        server: str,
        config: ServerConfig,
        *,
        open_link: OpenLink,
        slots: Slots,
        clock: Clock,
        version: str,
        probe_interval: float,
        on_change: Callable[[], None],
        models: ModelProvider | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.server = server
        self.config = config
        self.state = ServerState.CONNECTING
        self.reason = ""
        self.since: datetime = clock.now()
        self.next_probe_at: datetime | None = None
        self.agreed: Agreed | None = None
        """The agreement of the last session."""
        self.catalog: Catalog | None = None
        self.sampler = Sampler(
            server,
            config.sampling,
            models=models,
            asks_first=config.trust is Trust.UNTRUSTED,
            clock=clock,
        )
        self.calls = Calls(server, clock=clock, sampler=self.sampler)
        self.turn: AbstractAsyncContextManager[None] = (
            asyncio.Lock() if config.exclusive else nullcontext()
        )
        """Held by a call from before it is written down until it has ended."""
        self._open_link = open_link
        self._slots = slots
        self._clock = clock
        self._version = version
        self._probe_interval = probe_interval
        self._on_change = on_change
        self._tries = Tries(jitter)
        self._mail = Mailbox()
        self._link: Link | None = None
        self._session: HostSession | None = None
        self._era: Era | None = None
        self._pausing = False
        self._changed = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or ignored, in words."""
        problems = self.catalog.problems if self.catalog is not None else ()
        return (*problems, *(self._link.notes if self._link is not None else ()))

    # --- for others -----------------------------------------------------------

    async def ready(self) -> HostSession:
        """Return the session of a live connection; wakes a parked or pausing owner.

        Raises:
            ServerParked: At once, while a new try has been asked for.
            ServerUnavailable: It did not get ready within `connect_timeout`.
        """
        if self._session is not None and not self._session.closed:
            return self._session
        hurried = False
        try:
            async with asyncio.timeout(self.config.connect_timeout):
                while self._session is None or self._session.closed:
                    if self._pausing and not hurried:
                        hurried = True
                        self._mail.put(Note.TRY_NOW)
                    self._refuse_if_down()
                    await self._changed.wait()
        except TimeoutError:
            problem = f"still connecting after {self.config.connect_timeout:g} s"
            raise ServerUnavailable(self.server, problem, sent=False) from None
        return self._session

    async def settled(self) -> None:
        """Return when the server is listed, parked or closed."""
        while self.state is ServerState.CONNECTING:
            await self._changed.wait()

    async def tried(self) -> None:
        """Return when the server is listed, or a try of it has failed; see `reason`."""
        while self.state is ServerState.CONNECTING and not self.reason:
            await self._changed.wait()

    async def try_now(self) -> None:
        """Have a parked or pausing owner connect; returns when that try has ended."""
        await self._ask(Note.TRY_NOW)

    async def reconnect(self) -> None:
        """Have the owner connect anew in any case; returns when that try has ended."""
        await self._ask(Note.RECONNECT)

    def refresh(self) -> None:
        """Have the tools listed again soon."""
        self._mail.put(Note.TOOLS_CHANGED)

    def _refuse_if_down(self) -> None:
        if self.state is ServerState.PARKED:
            left = None
            if self.next_probe_at is not None:
                left = max(0.0, (self.next_probe_at - self._clock.now()).total_seconds())
            raise ServerParked(self.server, self.reason, left)
        if self.state is ServerState.CLOSED:
            raise ServerUnavailable(self.server, "its connection was closed", sent=False)

    async def _ask(self, note: Note) -> None:
        if self.state is ServerState.CLOSED:
            return
        tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(tried)
        self._mail.put(note)
        await tried

    # --- the owner ------------------------------------------------------------

    async def run(self) -> None:
        """Own the connection until cancelled; nothing that a server does ends it."""
        try:
            await self._keep_connected()
        finally:
            self._enter(ServerState.CLOSED)
            self._tell_waiting()

    async def _keep_connected(self) -> None:
        while True:
            end = await self._attempt()
            if end.how is Ending.ASKED:
                self._tries.restart()
            elif await self._wait(end) is Note.RECONNECT:
                self._tries.restart()
                self._enter(ServerState.CONNECTING, self.reason)

    async def _wait(self, end: Ended) -> Note:
        pause = self._tries.pause_after(end)
        if pause is None:
            pause = self._tries.jittered(self._probe_interval)
            probe_at = self._clock.now() + timedelta(seconds=pause)
            self._enter(ServerState.PARKED, end.reason, next_probe_at=probe_at)
            agent_log.park(server=self.server, reason=end.reason, retry_in=pause)
        else:
            self._enter(ServerState.CONNECTING, end.reason)
        timer = asyncio.create_task(self._wake_after(pause), name=f"pause:{self.server}")
        self._pausing = True
        try:
            while True:
                note = await self._mail.get()
                if note in {Note.TRY_NOW, Note.RECONNECT}:
                    return note
        finally:
            self._pausing = False
            timer.cancel()
            await asyncio.wait({timer})

    async def _wake_after(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._mail.put(Note.TRY_NOW)

    async def _attempt(self) -> Ended:
        """Connect and stay connected; every way this can end is a value."""
        end = await self._attempt_once()
        if end.how in {Ending.FAILED, Ending.HOPELESS}:
            self._tell_waiting()
            agent_log.connect(
                server=self.server, ms=end.lasted * 1000, outcome="failed", error=end.reason
            )
        return end

    async def _attempt_once(self) -> Ended:
        limit = self.config.connect_timeout
        began = self._clock.monotonic()

        def failed(reason: str, *, how: Ending = Ending.FAILED) -> Ended:
            return Ended(how=how, reason=reason, lasted=self._clock.monotonic() - began)

        try:
            async with self._slots.take() as slot, asyncio.timeout(limit) as bound:
                self._mail.drop(*Note)
                opened = self._clock.monotonic()
                async with self._open_link() as link:
                    self._link = link
                    return await self._live(link, slot.release, bound, opened=opened)
        except TimeoutError:
            return failed(self._with_last_words(f"no answer in {limit:g} s"))
        except ToolHostError as error:
            return failed(error.problem, how=Ending.FAILED if error.retryable else Ending.HOPELESS)
        except Exception as error:
            # The SDK has no list of what it raises for a server that talks nonsense.
            logger.debug("server %s: connecting failed", self.server, exc_info=True)
            return failed(reason_of(error))
        finally:
            self._link = None

    async def _live(
        self, link: Link, connected: Callable[[], None], bound: asyncio.Timeout, *, opened: float
    ) -> Ended:
        session = HostSession(
            link,
            version=self._version,
            elicit=self._elicit if self.config.elicitation.enabled else None,
            sample=self._sample if self.sampler.offered else None,
            sample_with_tools=self.sampler.takes_tools,
            on_tools_changed=self.refresh,
            on_closed=lambda: self._mail.put(Note.LINK_DOWN),
        )
        began = self._clock.monotonic()
        async with session:
            try:
                self._era = await negotiate(session, self.config.protocol, remembered=self._era)
                agreed = self._clock.monotonic()
                self.agreed = Agreed(
                    era=self._era,
                    protocol_version=session.protocol_version or "",
                    seconds=agreed - opened,
                )
                self.catalog = await _list(session)
            except MCPError as error:
                reason = await session.why_closed() if session.closed else reason_of(error)
                lasted = self._clock.monotonic() - began
                return Ended(how=Ending.FAILED, reason=reason, lasted=lasted)
            bound.reschedule(None)
            connected()
            agent_log.connect(server=self.server, ms=(agreed - began) * 1000, outcome="ok")
            took = self._clock.monotonic() - agreed
            agent_log.discovery(server=self.server, ms=took * 1000, tools=len(self.catalog.tools))
            return await self._serve(session)

    async def _serve(self, session: HostSession) -> Ended:
        started = self._clock.monotonic()
        self._session = session
        self._enter(ServerState.READY)
        self._tell_waiting()
        listener = asyncio.create_task(self._listen(session), name=f"listen:{self.server}")
        try:
            while True:
                match await self._mail.get():
                    case Note.LINK_DOWN:
                        lasted = self._clock.monotonic() - started
                        reason = await session.why_closed()
                        return Ended(how=Ending.LOST, reason=reason, lasted=lasted)
                    case Note.RECONNECT:
                        session.closing = "it is being reconnected"
                        self._enter(ServerState.CONNECTING, session.closing)
                        return Ended(how=Ending.ASKED)
                    case Note.TOOLS_CHANGED:
                        await self._refresh(session)
                    case Note.TRY_NOW:
                        self._tell_waiting()
        except asyncio.CancelledError:
            session.closing = "its connection was closed"
            raise
        finally:
            self._session = None
            listener.cancel()
            await asyncio.wait({listener})

    async def _refresh(self, session: HostSession) -> None:
        await self._clock.sleep(DEBOUNCE_SECONDS)
        self._mail.drop(Note.TOOLS_CHANGED)
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(REFRESH_SECONDS):
                catalog = await _list(session)
        except (MCPError, ServerUnavailable, TimeoutError) as error:
            logger.warning("server %s: its tools stay as they were: %s", self.server, error)
            return
        if catalog != self.catalog:
            self.catalog = catalog
            took = self._clock.monotonic() - began
            agent_log.refresh(server=self.server, ms=took * 1000, tools=len(catalog.tools))
            self._on_change()

    async def _listen(self, session: HostSession) -> None:
        capabilities = session.server_capabilities
        tools = capabilities.tools if capabilities is not None else None
        if session.era is not Era.MODERN or tools is None or not tools.list_changed:
            return
        while True:
            try:
                await session.listen_for_tools()
            except (MCPError, ServerUnavailable) as error:
                logger.debug("server %s: no news of its tools: %s", self.server, error)
                return
            await self._clock.sleep(LISTEN_AGAIN_SECONDS)
            self.refresh()

    async def _sample(self, params: Mapping[str, object]) -> dict[str, object]:
        late = self._session is None or self._session.awaits_late_answers
        return await self.calls.sample(params, late=late)

    async def _elicit(self, params: Mapping[str, object]) -> dict[str, object]:
        late = self._session is None or self._session.awaits_late_answers
        return await self.calls.elicit(params, late=late)

    def _with_last_words(self, reason: str) -> str:
        words = self._link.last_words if self._link is not None else ""
        return f"{reason}: {words}" if words else reason

    def _tell_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for tried in waiting:
            if not tried.done():
                tried.set_result(None)

    def _enter(
        self, state: ServerState, reason: str = "", *, next_probe_at: datetime | None = None
    ) -> None:
        self.next_probe_at = next_probe_at
        if (state, reason) != (self.state, self.reason):
            because = f": {reason}" if reason else ""
            logger.info("server %s: %s -> %s%s", self.server, self.state, state, because)
            if state is not self.state:
                self.since = self._clock.now()
            self.state, self.reason = state, reason
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        self._on_change()


async def _list(session: HostSession) -> Catalog:
    async def ask_page(cursor: str | None) -> Mapping[str, object]:
        return await session.request("tools/list", {"cursor": cursor} if cursor else None)

    capabilities = session.server_capabilities
    try:
        return await read_catalog(ask_page)
    except MCPError:
        # A server without tools need not know the method; some have tools and forget to say so.
        if session.closed or capabilities is None or capabilities.tools is not None:
            raise
        return Catalog()
