"""Time, so that tests can hold it."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time, so that tests can hold it."""

    def now(self) -> datetime:
        """Return the aware wall-clock time."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds of this clock."""
        ...
