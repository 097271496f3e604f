"""A clock on which every sleep is over almost at once."""

import asyncio

from tests.support.clock import ManualClock

_REAL_SECONDS = 0.002


class HastyClock(ManualClock):
    """Implements `Clock`; `slept` says how long somebody meant to wait, and the time did pass."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        # Whoever polls on this clock must leave room for everybody else.
        await asyncio.sleep(_REAL_SECONDS)
