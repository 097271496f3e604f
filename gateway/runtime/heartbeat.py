"""Proves that the event loop turns: beats in memory, and anybody may ask how long ago."""

from typing import Final

from gateway.ports import Clock

BEAT_SECONDS: Final = 1.0
LATE_SECONDS: Final = 10.0
"""A beat this old means that something holds the loop."""


class Heartbeat:
    """One for the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.monotonic()

    async def beat(self) -> None:
        """Beat once; somebody has to every `BEAT_SECONDS`."""
        self._last = self._clock.monotonic()

    @property
    def age(self) -> float:
        """Seconds since the last beat."""
        return self._clock.monotonic() - self._last
