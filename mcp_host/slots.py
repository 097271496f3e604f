"""How many servers may be connecting at once, so that many starts share the machine."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

HELD_SECONDS: Final = 10.0
"""A server that takes longer waits for something; it must not keep the others waiting too."""


class Slot:
    """One place among those that connect; given back once, by whoever is first."""

    def __init__(self, slots: asyncio.Semaphore | None) -> None:
        self._slots = slots

    def release(self) -> None:
        """Let the next one connect."""
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.release()


class Slots:
    """`limit` places; 0 is without limit."""

    def __init__(self, limit: int) -> None:
        self._slots = asyncio.Semaphore(limit) if limit else None

    @asynccontextmanager
    async def take(self) -> AsyncGenerator[Slot]:
        """Wait for a place and hold it until it is released, or too long."""
        if self._slots is not None:
            await self._slots.acquire()
        slot = Slot(self._slots)
        timer = asyncio.get_running_loop().call_later(HELD_SECONDS, slot.release)
        try:
            yield slot
        finally:
            timer.cancel()
            slot.release()
