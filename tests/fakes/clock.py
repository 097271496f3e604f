"""A clock on which every sleep is over at once."""

import asyncio

from tests.support.clock import ManualClock


class HastyClock(ManualClock):
    """Implements `Clock`; `slept` says how long somebody meant to wait, and the time did pass."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)
