"""Claims conversations and runs their turns: many at a time, one in a conversation, in order."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final, assert_never

from gateway.domain.errors import Fenced, GatewayError, StoreBusy
from gateway.domain.ids import Actor, InboundId, Place
from gateway.domain.message import InboundEvent
from gateway.domain.operations.turns import Claim, TurnEnd
from gateway.ports import Clock, TurnStore
from gateway.runtime.backlog import Backlog
from gateway.runtime.busy import Busy, Fate
from gateway.runtime.persist import persist
from gateway.runtime.streaming import Growing, Streams
from gateway.runtime.turn import BROKE, Cut, Ending, Turn
from gateway.runtime.turns import Turns
from gateway.runtime.typing_indicator import TypingIndicator
from gateway.runtime.wakeups import Wakeups
from gateway.telemetry.context import bind

logger = logging.getLogger(__name__)

MAX_TURNS: Final = 64
GRACE_SECONDS: Final = 8.0
"""What running turns get at shutdown; with storing and delivering it stays within 10 s."""
STOP_SECONDS: Final = 10.0
"""How long whoever stops a turn waits for its end."""
RETRY_SECONDS: Final = 5.0
"""Before a turn that could not be ended, or met a busy store, is taken up again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What an attempt gave; `broke` names the unexpected error that ended it.

    `parked`: it goes on at its last recorded step when it is claimed again.
    """

    ending: Ending | None
    parked: bool = False
    broke: str = ""


@dataclass(slots=True, kw_only=True)
class _Running:
    """A claim that is worked on, from the moment it is ours; its turn and task follow at once.

    `tasks` hold what is done beside it. `cut` is why a person ended it; `told`: it was said that
    something waits for its end.
    """

    claim: Claim
    tasks: asyncio.TaskGroup
    arrivals: asyncio.Event = field(default_factory=asyncio.Event)
    turn: Turn | None = None
    task: asyncio.Task[_Outcome] | None = None
    cut: Cut | None = None
    told: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_ending(self) -> bool:
        """True when it cannot be ended any more, because it ends already."""
        return self.cut is not None or (self.task is not None and self.task.done())


class Workers:
    """The turn lane of one process."""

    def __init__(
        self,
        *,
        store: TurnStore,
        turns: Turns,
        busy: Busy,
        wakeups: Wakeups,
        backlog: Backlog,
        typing: TypingIndicator,
        streams: Streams,
        clock: Clock,
        worker: str,
        max_turns: int = MAX_TURNS,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._store = store
        self._turns = turns
        self._busy = busy
        self._wakeups = wakeups
        self._backlog = backlog
        self._typing = typing
        self._streams = streams
        self._clock = clock
        self._worker = worker
        self._grace = grace
        self._slots = asyncio.Semaphore(max_turns)
        self._running: dict[str, _Running] = {}
        self._leaving = asyncio.Event()

    async def stop(self, place: Place, *, by: Actor) -> bool:
        """End the running turn of a conversation, and return once its end is stored.

        False when none runs, or it is just ending.
        """
        running = self._running.get(place.session_key)
        if running is None or running.is_ending:
            return False
        self._end(running, Cut.STOPPED, by=by)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await running.ended.wait()
        except TimeoutError:
            logger.warning("turn %d has not ended yet", running.claim.turn)
        return True

    async def arrived(self, event: InboundEvent, *, inbound: InboundId) -> None:
        """Let an input that was stored wait for the running turn, end it, or join it."""
        running = self._running.get(event.place.session_key)
        if running is None or running.is_ending or _takes(running.claim, inbound):
            return
        fate = self._busy.fate(event, running.claim)
        match fate:
            case Fate.INTERRUPTS:
                self._end(running, Cut.INTERRUPTED, by=event.sender)
            case Fate.JOINS:
                running.arrivals.set()
            case Fate.WAITS if self._busy.can_mark(event.place):
                # A call of a platform: whoever hands the message in does not wait for it.
                running.tasks.create_task(self._mark(running, event), name="waits:mark")
            case Fate.WAITS:
                await self._tell(running)
            case _:
                assert_never(fate)

    async def _mark(self, running: _Running, event: InboundEvent) -> None:
        try:
            if not await self._busy.mark(event) and not running.ended.is_set():
                await self._tell(running)
        except Exception:
            # The message itself is stored.
            logger.exception("not shown that a message waits")

    async def _tell(self, running: _Running) -> None:
        if not running.told:
            running.told = True
            await self._busy.say_it_waits(running.claim)

    def _end(self, running: _Running, cut: Cut, *, by: Actor) -> None:
        logger.info("turn %d ended by %s: %s", running.claim.turn, by, cut)
        running.cut = cut
        if running.turn is not None:
            running.turn.abandon()
        if running.task is not None:
            running.task.cancel()

    def is_busy(self, place: Place) -> bool:
        """Say whether a turn of the conversation runs in this process."""
        return place.session_key in self._running

    def shut_down(self) -> None:
        """Claim nothing more, and let `run` return after the running turns ended or were parked."""
        self._leaving.set()
        self._wakeups.turns()

    async def run(self) -> None:
        """Work until `shut_down`, or until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._claim_turns(tasks), name="turns:claim")
            await self._leaving.wait()
            await self._park()

    async def _claim_turns(self, tasks: asyncio.TaskGroup) -> None:
        while not self._leaving.is_set():
            await self._slots.acquire()
            claim = None if self._leaving.is_set() else await self._claim()
            if claim is None:
                self._slots.release()
                await self._wait_for_work()
                continue
            running = self._begin(claim, tasks)
            with bind(conversation=claim.place.session_key, turn=claim.turn):
                tasks.create_task(self._work(tasks, running), name=f"turn:{claim.turn}:worker")

    async def _claim(self) -> Claim | None:
        return await persist(
            lambda: self._store.claim_turn(worker=self._worker, held=self._backlog.held),
            clock=self._clock,
        )

    def _begin(self, claim: Claim, tasks: asyncio.TaskGroup) -> _Running:
        # Before anything else is awaited: what arrives from now on arrives during this turn.
        running = self._running[claim.place.session_key] = _Running(claim=claim, tasks=tasks)
        if self._busy.joins_at_start(claim):
            running.arrivals.set()
        return running

    async def _wait_for_work(self) -> None:
        if not self._leaving.is_set():
            await self._wakeups.wait_turns(within=self._backlog.seconds_left, clock=self._clock)

    async def _work(self, tasks: asyncio.TaskGroup, running: _Running) -> None:
        claim = running.claim
        try:
            growing = self._streams.growing(claim.place)
            turn = running.turn = await self._turns.open(
                claim, arrivals=running.arrivals, growing=growing
            )
            task = tasks.create_task(self._attempt(turn, growing), name=f"turn:{claim.turn}")
            running.task = task
            if self._leaving.is_set() or running.cut is not None:
                task.cancel()
            await asyncio.wait({task})
            ending = await self._ending_of(turn, task, running.cut)
            # From here on it cannot be stopped any more: what is stored is what was decided.
            self._forget(running)
            await self._finish(claim, ending)
        except asyncio.CancelledError:
            if running.task is not None:
                running.task.cancel()
            await self._give_back(claim)
            raise
        except Fenced as error:
            logger.info("turn given up: %s", error)
        except Exception as error:
            logger.exception("turn could not be ended as it should")
            await self._end_anyhow(claim, error)
        finally:
            self._forget(running)
            running.ended.set()
            self._slots.release()

    async def _attempt(self, turn: Turn, growing: Growing | None) -> _Outcome:
        def paused() -> bool:
            return turn.is_waiting

        try:
            async with (
                self._typing.shown(turn.claim.place, paused=paused),
                self._streams.shown(turn.claim, growing, paused=paused),
            ):
                await self._turns.wait_for_servers(turn.claim)
                return _Outcome(ending=await turn.run())
        except Fenced as error:
            logger.info("turn given up: %s", error)
            return _Outcome(ending=None)
        except StoreBusy as error:
            logger.warning("turn parked: %s", error)
            await self._clock.sleep(RETRY_SECONDS)
            return _Outcome(ending=None, parked=True)
        except Exception as error:
            logger.exception("turn failed")
            return _Outcome(ending=None, broke=type(error).__name__)

    async def _ending_of(
        self, turn: Turn, task: asyncio.Task[_Outcome], cut: Cut | None
    ) -> Ending | None:
        """Return what to store; None when the turn is parked or belongs to somebody else."""
        if task.cancelled():
            if cut is not None:
                return await turn.stopped(cut)
            await self._give_back(turn.claim)
            return None
        outcome = task.result()
        if outcome.parked:
            await self._give_back(turn.claim)
        return await turn.broken(error=outcome.broke) if outcome.broke else outcome.ending

    def _forget(self, running: _Running) -> None:
        key = running.claim.place.session_key
        # The conversation may have been claimed anew since.
        if self._running.get(key) is running:
            del self._running[key]

    async def _finish(self, claim: Claim, ending: Ending | None) -> None:
        if ending is None:
            return
        committed = await self._turns.store_end(
            claim, ending, not_before=self._backlog.held_until(claim.place)
        )
        if committed.more:
            self._wakeups.turns()
        logger.info("turn ended: %s, more waiting: %s", ending.end, committed.more)

    async def _end_anyhow(self, claim: Claim, error: Exception) -> None:
        """End a turn whose journal cannot be read or whose reply cannot be stored."""
        ending = Ending(end=TurnEnd.FAILED, reply=BROKE, error=type(error).__name__)
        try:
            await self._finish(claim, ending)
        except Fenced as fenced:
            logger.info("turn given up: %s", fenced)
        except Exception:
            logger.exception("turn could not be ended; it is taken up again")
            await self._clock.sleep(RETRY_SECONDS)
            await self._give_back(claim)

    async def _give_back(self, claim: Claim) -> None:
        try:
            await self._turns.give_back(claim)
        except GatewayError as error:
            logger.warning("claim not released, the next start frees it: %s", error)
        self._wakeups.turns()

    async def _park(self) -> None:
        """Give running turns their grace, but none that waits on a person, then park the rest."""
        tasks = {item.task for item in self._running.values() if item.task is not None}
        for running in self._running.values():
            if running.task is not None and running.turn is not None and running.turn.is_waiting:
                running.task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._grace)
        for task in tasks:
            task.cancel()


def _takes(claim: Claim, inbound: InboundId) -> bool:
    return any(item.id == inbound for item in claim.inputs)
