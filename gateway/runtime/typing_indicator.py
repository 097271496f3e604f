"""Shows people that an answer is being worked on, while it is and nobody is waited for."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from gateway.domain.ids import Account, Place
from gateway.ports import Clock, Typing

FIRST_SECONDS: Final = 0.3
"""An answer that is there sooner needs no sign before it."""
EVERY_SECONDS: Final = 4.6
"""A sign lasts five seconds at least on every platform; an adapter leaves out what is too soon."""


class TypingIndicator:
    """The sign of every account that has one."""

    def __init__(self, adapters: Mapping[Account, Typing], clock: Clock) -> None:
        self._adapters = adapters
        self._clock = clock

    @asynccontextmanager
    async def shown(self, place: Place, *, paused: Callable[[], bool]) -> AsyncGenerator[None]:
        """Show it in a conversation until the block ends, except while it is `paused`."""
        adapter = self._adapters.get((place.platform, place.account))
        if adapter is None:
            yield
            return
        showing = asyncio.create_task(self._show(adapter, place, paused), name="typing")
        try:
            yield
        finally:
            showing.cancel()
            await asyncio.wait({showing})

    async def _show(self, adapter: Typing, place: Place, paused: Callable[[], bool]) -> None:
        await self._clock.sleep(FIRST_SECONDS)
        while True:
            if not paused():
                await adapter.show_typing(place)
            await self._clock.sleep(EVERY_SECONDS)
