"""In-process hints that something may be there to do. Carries no data: every waiter re-reads the store."""

import asyncio
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from gateway.domain.ids import QuestionId
from gateway.ports import Clock

_REMEMBERED_RINGS: Final = 1_000
"""Rings for questions nobody waits for yet; a settled one is read before it is waited for."""


class Bell:
    """Remembers one ring until somebody waits for it."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the waiter, or the next one to come."""
        self._rung.set()

    async def wait(self) -> None:
        """Return at the next ring, at once when it rang since the last wait."""
        await self._rung.wait()
        self._rung.clear()

    async def wait_until(self, at: datetime | None, *, clock: Clock) -> None:
        """Return at the next ring or at that time, whichever is first; None waits for a ring only."""
        seconds = None if at is None else max((at - clock.now()).total_seconds(), 0.0)
        await self.wait_within(seconds, clock=clock)

    async def wait_within(self, seconds: float | None, *, clock: Clock) -> None:
        """Return at the next ring, or after so many seconds; None waits for a ring only."""
        if seconds is None:
            await self.wait()
            return
        async with asyncio.TaskGroup() as tasks:
            alarm = tasks.create_task(self._ring_after(seconds, clock), name="bell:alarm")
            await self.wait()
            alarm.cancel()

    async def _ring_after(self, seconds: float, clock: Clock) -> None:
        await clock.sleep(seconds)
        self.ring()


class Wakeups:
    """The bells of one process: turns, controls and files have one waiter each, the others any number."""

    def __init__(self) -> None:
        self._turns = Bell()
        self._controls = Bell()
        self._files = Bell()
        self._deliveries: list[Bell] = []
        self._settled: OrderedDict[QuestionId, asyncio.Event] = OrderedDict()
        self._waiting: dict[QuestionId, int] = {}

    def turns(self) -> None:
        """Say that a conversation may have work."""
        self._turns.ring()

    async def wait_turns(self, *, within: float | None, clock: Clock) -> None:
        """Return at the next ring, or after `within` seconds when they are given."""
        await self._turns.wait_within(within, clock=clock)

    def controls(self) -> None:
        """Say that a control event may wait."""
        self._controls.ring()

    async def wait_controls(self) -> None:
        await self._controls.wait()

    def files(self) -> None:
        """Say that a message with files was stored."""
        self._files.ring()

    async def wait_files(self) -> None:
        await self._files.wait()

    def deliveries(self) -> None:
        """Say that the outbox may have something, for every account."""
        for bell in self._deliveries:
            bell.ring()

    @contextmanager
    def delivery_bell(self) -> Generator[Bell]:
        """Give one delivery loop its own bell, so that no loop takes another's ring."""
        bell = Bell()
        self._deliveries.append(bell)
        try:
            yield bell
        finally:
            self._deliveries.remove(bell)

    def settled(self, question: QuestionId) -> None:
        """Say that a question may have been settled."""
        self._bell_of(question).set()
        while len(self._settled) > _REMEMBERED_RINGS + len(self._waiting):
            self._forget_oldest()

    def any_settled(self) -> None:
        """Say that some question may have been settled, nobody knows which."""
        for question in self._waiting:
            self._bell_of(question).set()

    async def wait_settled(self, question: QuestionId) -> None:
        """Return at the next ring of this question, at once when it rang before; any number may wait."""
        rung = self._bell_of(question)
        self._waiting[question] = self._waiting.get(question, 0) + 1
        try:
            await rung.wait()
        finally:
            self._leave(question)

    def _bell_of(self, question: QuestionId) -> asyncio.Event:
        return self._settled.setdefault(question, asyncio.Event())

    def _leave(self, question: QuestionId) -> None:
        self._waiting[question] -= 1
        if not self._waiting[question]:
            del self._waiting[question]
            self._settled.pop(question, None)

    def _forget_oldest(self) -> None:
        idle = next(key for key in self._settled if key not in self._waiting)
        del self._settled[idle]
