"""Tells whoever follows the store that something was committed. Carries nothing: everyone re-reads."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

Value = TypeVar("Value")


class Commits:
    """Rung after each group commit, for any number of waiters."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake all who wait now; from the event loop."""
        self._rung.set()
        self._rung = asyncio.Event()

    def listen(self) -> asyncio.Event:
        """Return what the next ring sets; take it before looking, then no ring is missed."""
        return self._rung

    async def until(self, look: Callable[[], Awaitable[Value | None]]) -> Value:
        """Return what `look` gives once it is not None; it looks again after each commit."""
        while True:
            rung = self.listen()
            found = await look()
            if found is not None:
                return found
            await rung.wait()
