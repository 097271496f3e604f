"""The system's time behind the `Clock` port."""

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """Implements `gateway.ports.Clock`."""

    def now(self) -> datetime:
        """Return the aware wall-clock time."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds."""
        await asyncio.sleep(seconds)
