"""One server's connection: a single task opens it, keeps it, loses it, ends it and tries again.

Callers use the session from their own tasks, so that what cancels one call touches no other.
Knows no approvals, names or filters.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, assert_never

from mcp import MCPError

from gateway.domain.errors import (
    NeedsLogin,
    NeedsScope,
    ServerParked,
    ServerUnavailable,
    ToolHostError,
)
from gateway.domain.tools import ServerState
from gateway.ports import Clock
from gateway.telemetry import agent_log
from mcp_host.calls import Calls
from mcp_host.catalog import Catalog
from mcp_host.errors import leaf, reason_of
from mcp_host.mailbox import Mailbox, Note
from mcp_host.minding import keep_alive, watch_limits
from mcp_host.negotiation import negotiate
from mcp_host.offer import changing_lists, read_offer
from mcp_host.schema_cache import Known
from mcp_host.server_config import ServerConfig, UrlMode
from mcp_host.session import Era, HostSession
from mcp_host.shared import Shared
from mcp_host.slots import Slots
from mcp_host.transports.base import Link, OpenLink
from mcp_host.tries import Ended, Ending, Tries
from mcp_host.use import Use

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
    """A connection of one server entry; `run` or `run_once` is its owner, everything else only asks.

    `state`, `reason`, `needs_login`, `since`, `next_probe_at`, `agreed`, `catalog` and `starts` are
    for reading; `on_change` is called after one of them changed. A server that is not connected keeps the
    catalog it had; `known` is the one of an earlier process.
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
        shared: Shared,
        known: Known | None = None,
        number: int = 1,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.server = server
        self.config = config
        self.number = number
        self.state = ServerState.CONNECTING
        self.reason = ""
        self.needs_login = False
        self.since: datetime = clock.now()
        self.next_probe_at: datetime | None = None
        self._probe_due = float("inf")
        self.agreed: Agreed | None = None
        """The agreement of the last session."""
        self.catalog: Catalog | None = known.catalog if known is not None else None
        self.starts = 0
        """How many times it got ready."""
        self.calls = Calls(server, clock=clock, sampler=shared.sampler, counts=shared.answers)
        self._shared = shared
        self._use = Use(clock)
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
        self._era = Era(known.era) if known is not None else None
        self._pausing = False
        self._changed = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or ignored, in words."""
        problems = self.catalog.problems if self.catalog is not None else ()
        return (*problems, *(self._link.notes if self._link is not None else ()))

    @property
    def era(self) -> Era | None:
        """What the server spoke last, None when it never was connected."""
        return self._era

    @property
    def is_live(self) -> bool:
        """True while its session can be used."""
        return self._session is not None and not self._session.closed

    @property
    def awaits_late(self) -> bool:
        """True while its server may still ask for a call that was given up."""
        return self._session is not None and self._session.awaits_late_answers

    # --- for others -----------------------------------------------------------

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Use the server inside the block, from before a call is written down until its end.

        Waits for the users before, if it is exclusive; it is not recycled meanwhile.
        """
        async with self._shared.turns:
            with self._use.held():
                yield

    async def ready(self) -> HostSession:
        """Return the session of a live connection; wakes a parked or pausing owner.

        Raises:
            ServerParked: At once, while a new try has been asked for.
            ServerUnavailable: It did not get ready within `connect_timeout`.
        """
        if self._session is not None and self.is_live:
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
        """Return when its tools are known, or it is parked or closed."""
        while self.state is ServerState.CONNECTING and self.catalog is None:
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

    def probe_if_due(self) -> None:
        """Have a parked owner try again when the time for that has come."""
        if self.state is ServerState.PARKED and self._clock.monotonic() >= self._probe_due:
            # Once: until it is parked again it needs no other.
            self._probe_due = float("inf")
            self._mail.put(Note.TRY_NOW)

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

    async def run_once(self) -> None:
        """Own it until it ends, by itself or cancelled; `reason` says why, and it is not tried again."""
        reason = ""
        try:
            reason = (await self._attempt()).reason
        finally:
            self._enter(ServerState.CLOSED, reason)
            self._tell_waiting()

    async def _keep_connected(self) -> None:
        while True:
            end = await self._attempt()
            match end.how:
                case Ending.ASKED | Ending.AGED:
                    self._tries.restart()
                case Ending.IDLE:
                    self._tries.restart()
                    self._enter(ServerState.LAZY, end.reason)
                    await self._until_wanted()
                    self._enter(ServerState.CONNECTING)
                case Ending.FAILED | Ending.HOPELESS | Ending.LOST:
                    if await self._wait(end) is Note.RECONNECT:
                        self._tries.restart()
                        self._enter(ServerState.CONNECTING, self.reason)
                case _:
                    assert_never(end.how)

    async def _wait(self, end: Ended) -> Note:
        pause = self._tries.pause_after(end)
        self.needs_login = end.needs_login
        if pause is None:
            pause = self._tries.jittered(self._probe_interval)
            self._probe_due = self._clock.monotonic() + pause
            probe_at = self._clock.now() + timedelta(seconds=pause)
            self._enter(ServerState.PARKED, end.reason, next_probe_at=probe_at)
            agent_log.park(server=self.server, reason=end.reason, retry_in=pause)
            return await self._until_wanted()
        self._enter(ServerState.CONNECTING, end.reason)
        timer = asyncio.create_task(self._wake_after(pause), name=f"pause:{self.server}")
        try:
            return await self._until_wanted()
        finally:
            timer.cancel()
            await asyncio.wait({timer})

    async def _until_wanted(self) -> Note:
        self._pausing = True
        try:
            while True:
                note = await self._mail.get()
                if note in {Note.TRY_NOW, Note.RECONNECT}:
                    return note
        finally:
            self._pausing = False

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

        def failed(reason: str, *, how: Ending = Ending.FAILED, needs_login: bool = False) -> Ended:
            lasted = self._clock.monotonic() - began
            return Ended(how=how, reason=reason, lasted=lasted, needs_login=needs_login)

        try:
            async with self._slots.take() as slot, asyncio.timeout(limit) as bound:
                self._mail.drop(*Note)
                opened = self._clock.monotonic()
                async with self._open_link() as link:
                    self._link = link
                    return await self._live(link, slot.release, bound, opened=opened)
        except TimeoutError:
            return failed(self._with_last_words(f"no answer in {limit:g} s"))
        except Exception as error:
            # The session's task group wraps what is raised inside it.
            cause = leaf(error)
            if isinstance(cause, ToolHostError):
                how = Ending.FAILED if cause.retryable else Ending.HOPELESS
                needs_login = isinstance(cause, NeedsLogin | NeedsScope)
                return failed(cause.problem, how=how, needs_login=needs_login)
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
            elicit_links=self.config.elicitation.url is UrlMode.ASK,
            sample=self._sample if self._shared.sampler.offered else None,
            sample_with_tools=self._shared.sampler.takes_tools,
            on_lists_changed=self.refresh,
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
                self._take(await read_offer(session, self.config.tools))
            except MCPError as error:
                reason = await session.why_closed() if session.closed else reason_of(error)
                lasted = self._clock.monotonic() - began
                return Ended(how=Ending.FAILED, reason=reason, lasted=lasted)
            bound.reschedule(None)
            connected()
            agent_log.connect(server=self.server, ms=(agreed - began) * 1000, outcome="ok")
            took = self._clock.monotonic() - agreed
            agent_log.discovery(server=self.server, ms=took * 1000, tools=self._tool_count)
            return await self._serve(session)

    async def _serve(self, session: HostSession) -> Ended:
        started = self._clock.monotonic()
        self._session = session
        self.needs_login = False
        self.starts += 1
        # Who asked while it was connecting has what was asked for.
        self._mail.drop(Note.TRY_NOW, Note.RECONNECT)
        self._enter(ServerState.READY)
        self._tell_waiting()
        try:
            async with _beside(self._companions(session)):
                return await self._until_it_ends(session, started)
        except asyncio.CancelledError:
            session.closing = "its connection was closed"
            raise
        finally:
            self._session = None

    def _companions(self, session: HostSession) -> Mapping[str, Coroutine[Any, Any, None]]:
        """What runs beside a live session, and ends with it."""
        tell, clock, use = self._mail.put, self._clock, self._use
        return {
            f"listen:{self.server}": self._listen(session),
            f"keepalive:{self.server}": keep_alive(
                session, self.config, use=use, clock=clock, tell=tell
            ),
            f"limits:{self.server}": watch_limits(self.config, use=use, clock=clock, tell=tell),
        }

    async def _until_it_ends(self, session: HostSession, started: float) -> Ended:
        while True:
            match await self._mail.get():
                case Note.LINK_DOWN:
                    lasted = self._clock.monotonic() - started
                    reason = await session.why_closed()
                    alone = session.needs_person
                    how = Ending.HOPELESS if alone else Ending.LOST
                    return Ended(how=how, reason=reason, lasted=lasted, needs_login=alone)
                case Note.UNANSWERED:
                    lasted = self._clock.monotonic() - started
                    session.closing = "it did not answer when asked whether it is there"
                    return Ended(how=Ending.LOST, reason=session.closing, lasted=lasted)
                case Note.RECONNECT:
                    session.closing = "it is being reconnected"
                    self._enter(ServerState.CONNECTING, session.closing)
                    return Ended(how=Ending.ASKED)
                case Note.OLD if not self._use.busy:
                    age = self.config.max_lifetime_seconds
                    session.closing = f"it is being restarted after {age:g} s"
                    self._enter(ServerState.RECYCLING, session.closing)
                    return Ended(how=Ending.AGED)
                case Note.UNUSED if not self._use.busy:
                    session.closing = f"not used for {self.config.idle_timeout_seconds:g} s"
                    self._enter(ServerState.RECYCLING, session.closing)
                    return Ended(how=Ending.IDLE, reason=session.closing)
                case Note.OLD | Note.UNUSED:
                    pass
                case Note.TOOLS_CHANGED:
                    await self._refresh(session)
                case Note.TRY_NOW:
                    self._tell_waiting()

    async def _refresh(self, session: HostSession) -> None:
        await self._clock.sleep(DEBOUNCE_SECONDS)
        self._mail.drop(Note.TOOLS_CHANGED)
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(REFRESH_SECONDS):
                changed = self._take(await read_offer(session, self.config.tools))
        except (MCPError, ServerUnavailable, TimeoutError) as error:
            logger.warning("server %s: its tools stay as they were: %s", self.server, error)
            return
        if changed:
            took = self._clock.monotonic() - began
            agent_log.refresh(server=self.server, ms=took * 1000, tools=self._tool_count)
            self._on_change()

    def _take(self, catalog: Catalog) -> bool:
        """Put a catalog in place of the old one if it is another."""
        if catalog == self.catalog:
            return False
        self.catalog = catalog
        return True

    @property
    def _tool_count(self) -> int:
        return len(self.catalog.tools) if self.catalog is not None else 0

    async def _listen(self, session: HostSession) -> None:
        changing = changing_lists(session)
        if session.era is not Era.MODERN or not changing:
            return
        while True:
            try:
                await session.listen_for_changes(changing)
            except (MCPError, ServerUnavailable) as error:
                logger.debug("server %s: no news of its tools: %s", self.server, error)
                return
            await self._clock.sleep(LISTEN_AGAIN_SECONDS)
            self.refresh()

    async def _sample(self, params: Mapping[str, object]) -> dict[str, object]:
        late = self._session is None or self.awaits_late
        return await self.calls.sample(params, late=late)

    async def _elicit(self, params: Mapping[str, object]) -> dict[str, object]:
        late = self._session is None or self.awaits_late
        if not self._shared.asks:
            self._shared.asks = True
            self._on_change()
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
            level = logging.WARNING if state is ServerState.PARKED else logging.INFO
            which = f", connection {self.number}" if self.number > 1 else ""
            said = (self.server, which, self.state, state, because)
            logger.log(level, "server %s%s: %s -> %s%s", *said)
            if state is not self.state:
                self.since = self._clock.now()
            self.state, self.reason = state, reason
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        self._on_change()


@asynccontextmanager
async def _beside(companions: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    """Run tasks while the block runs; they have ended after it."""
    tasks = [asyncio.create_task(each, name=name) for name, each in companions.items()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
