"""Which accounts still bring what waited for them, so that a night's backlog gets one answer.

Held in memory alone: after a crash the adapter finds its backlog again, or its end.
"""

from typing import Final

from gateway.domain.ids import Account
from gateway.ports import Clock
from gateway.runtime.wakeups import Wakeups

HOLD_SECONDS: Final = 15.0
"""How long the turns of an account wait for the end of its backlog: a flood must not hold them."""


class Backlog:
    """The accounts whose conversations begin no turn for now."""

    def __init__(self, wakeups: Wakeups, clock: Clock) -> None:
        self._wakeups = wakeups
        self._clock = clock
        self._ends: dict[Account, float] = {}

    def waits(self, account: Account) -> None:
        """Say that more is coming; a hold that has begun is not made longer."""
        self._ends.setdefault(account, self._clock.monotonic() + HOLD_SECONDS)

    def arrived(self, account: Account) -> None:
        """Say that nothing more is known to wait."""
        if self._ends.pop(account, None) is not None:
            self._wakeups.turns()

    @property
    def held(self) -> tuple[Account, ...]:
        """The accounts that are held now."""
        now = self._clock.monotonic()
        return tuple(account for account, end in self._ends.items() if end > now)

    @property
    def seconds_left(self) -> float | None:
        """How long until the next hold ends by itself, None without one."""
        now = self._clock.monotonic()
        return min((end - now for end in self._ends.values() if end > now), default=None)
