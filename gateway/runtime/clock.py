"""The system's time behind the `Clock` port, steady while somebody turns the system's clock."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

SLEW: Final = 0.1
"""How much faster or slower than time itself `now` may run until it says what the system says."""


def _elapsed() -> float:
    """Return seconds that never jump, those of a suspended machine included."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class SystemClock:
    """Implements `gateway.ports.Clock`.

    When the system's time jumps, `now` does not: it draws near at a tenth of the speed of time, and
    never goes back. What is due after so many seconds therefore is, and not at once or in a day.
    """

    def __init__(
        self, *, wall: Callable[[], float] = time.time, elapsed: Callable[[], float] = _elapsed
    ) -> None:
        self._wall = wall
        self._elapsed = elapsed
        # The store's thread asks too.
        self._lock = threading.Lock()
        self._shown = wall()
        self._at = elapsed()

    def now(self) -> datetime:
        """Return the aware wall-clock time."""
        with self._lock:
            at = self._elapsed()
            passed = max(at - self._at, 0.0)
            ahead = self._wall() - (self._shown + passed)
            most = passed * SLEW
            self._shown += passed + min(max(ahead, -most), most)
            self._at = at
            return datetime.fromtimestamp(self._shown, UTC)

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds."""
        await asyncio.sleep(seconds)
