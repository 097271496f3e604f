"""Asking the store again when it is busy, so that nothing is dropped for want of a moment."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from gateway.domain.errors import StoreBusy
from gateway.ports import Clock

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS: Final = 0.1
LONGEST_WAIT_SECONDS: Final = 5.0

Value = TypeVar("Value")


async def persist(ask: Callable[[], Awaitable[Value]], *, clock: Clock) -> Value:
    """Return what `ask` gives, repeating it with backoff for as long as the store is busy.

    Every operation may be repeated: what took effect before is told again.
    """
    wait = FIRST_WAIT_SECONDS
    while True:
        try:
            return await ask()
        except StoreBusy as error:
            logger.warning("%s; next try in %g s", error, wait)
        await clock.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT_SECONDS)
