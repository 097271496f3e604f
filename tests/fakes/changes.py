"""Waiting for what happens in a fake: every change lets those who wait look again."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Changes:
    """Kept by whoever knows of every change."""

    def __init__(self) -> None:
        self._change = asyncio.Event()

    def note(self) -> None:
        """Let everybody who waits look again."""
        self._change.set()
        self._change = asyncio.Event()

    async def next(self, *, seconds: float) -> None:
        """Wait for the next change, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._change.wait()

    async def until(self, holds: Callable[[], Any], *, seconds: float = 10, what: str = "") -> Any:
        """Return what `holds()` says once it is true.

        Raises:
            AssertionError: it was not within `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                while not (found := holds()):
                    await self._change.wait()
                return found
        except TimeoutError:
            raise AssertionError(f"not within {seconds:g} s: {what or 'it'}") from None
