"""Repeating a write the store could not take at the moment, so that a result is never dropped."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from gateway.domain.errors import StoreBusy
from gateway.ports import Clock

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS: Final = 0.1
LONGEST_WAIT_SECONDS: Final = 5.0

Value = TypeVar("Value")


async def persist(write: Callable[[], Awaitable[Value]], *, clock: Clock) -> Value:
    """Return what `write` gives, repeating it with backoff for as long as the store is busy."""
    wait = FIRST_WAIT_SECONDS
    while True:
        try:
            return await write()
        except StoreBusy as error:
            logger.warning("%s; next try in %g s", error, wait)
        await clock.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT_SECONDS)
