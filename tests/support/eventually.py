"""Waiting for a real process or thread: polls until it holds or a deadline passes."""

import asyncio
import time
from collections.abc import Callable

STEP_SECONDS = 0.01


def eventually(holds: Callable[[], bool], *, seconds: float = 30, what: str = "condition") -> None:
    """Return once `holds()`; fail the test when it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not hold within {seconds:g} s")
        time.sleep(STEP_SECONDS)


async def eventually_async(
    holds: Callable[[], bool], *, seconds: float = 30, what: str = "condition"
) -> None:
    """Do the same without blocking the event loop."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not hold within {seconds:g} s")
        await asyncio.sleep(STEP_SECONDS)
