"""A clock that stands until a test moves it."""

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class ManualClock:
    """Implements `gateway.ports.Clock`; `advance` wakes sleepers in order of their time."""

    def __init__(self, start: datetime = NOON) -> None:
        self._now = start
        self._monotonic = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), woken))
        await woken.wait()

    def advance(self, seconds: float) -> None:
        """Let that much time pass."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
        while self._sleepers and self._sleepers[0][0] <= self._monotonic:
            heapq.heappop(self._sleepers)[2].set()
