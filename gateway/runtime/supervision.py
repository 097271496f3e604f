"""Keeps an adapter connected: starts it again with backoff, so that one platform never ends another."""

import logging
from typing import Final

from gateway.domain.errors import AdapterError
from gateway.ports import Adapter, Clock, EventSink

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
STEADY_SECONDS: Final = 60.0
"""After running this long, a failure counts as the first one again."""


async def keep_running(adapter: Adapter, sink: EventSink, *, clock: Clock) -> None:
    """Run an adapter until its platform ends or the caller cancels."""
    wait = FIRST_WAIT_SECONDS
    while True:
        started = clock.monotonic()
        try:
            await adapter.run(sink)
            logger.info("adapter %s ended", adapter.platform)
            return
        except AdapterError as error:
            logger.warning("adapter %s: %s", adapter.platform, error)
        except Exception:
            logger.exception("adapter %s failed", adapter.platform)
        if clock.monotonic() - started >= STEADY_SECONDS:
            wait = FIRST_WAIT_SECONDS
        logger.info("adapter %s starts again in %g s", adapter.platform, wait)
        await clock.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT_SECONDS)
