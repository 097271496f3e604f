"""Which turns do not begin yet: those of a night's backlog, and of who says more than their rate.

While an account still brings what waited for it, all of that gets one answer. Held in memory alone:
after a crash the adapter finds its backlog again, or its end.
"""

from datetime import datetime, timedelta
from typing import Final

from gateway.domain.ids import Account, Place
from gateway.ports import Clock
from gateway.runtime.wakeups import Wakeups

HOLD_SECONDS: Final = 15.0
"""How long the turns of an account wait for the end of its backlog: a flood must not hold them."""


SPARE_SECONDS: Final = 0.05
"""After the end of a hold, so that the row is due when it is looked for."""


class Backlog:
    """The accounts and conversations that begin no turn for now."""

    def __init__(self, wakeups: Wakeups, clock: Clock) -> None:
        self._wakeups = wakeups
        self._clock = clock
        self._ends: dict[Account, float] = {}
        self._holds: dict[str, float] = {}

    def waits(self, account: Account) -> None:
        """Say that more is coming; a hold that has begun is not made longer."""
        self._ends.setdefault(account, self._clock.monotonic() + HOLD_SECONDS)

    def arrived(self, account: Account) -> None:
        """Say that nothing more is known to wait."""
        if self._ends.pop(account, None) is not None:
            self._wakeups.turns()

    def is_waiting(self, account: Account) -> bool:
        """Say whether an account still brings what waited for it."""
        return account in self._ends

    def hold(self, place: Place, seconds: float) -> datetime:
        """Let no turn begin in a conversation for so long, or for as long as it is held; say until when."""
        now = self._clock.monotonic()
        self._holds = {key: end for key, end in self._holds.items() if end > now}
        end = self._holds.setdefault(place.session_key, now + seconds)
        return self._clock.now() + timedelta(seconds=end - now)

    def held_until(self, place: Place) -> datetime | None:
        """Return until when no turn begins in a conversation, None when it may."""
        left = self._holds.get(place.session_key, 0.0) - self._clock.monotonic()
        return self._clock.now() + timedelta(seconds=left) if left > 0 else None

    @property
    def held(self) -> tuple[Account, ...]:
        """The accounts that are held now."""
        now = self._clock.monotonic()
        return tuple(account for account, end in self._ends.items() if end > now)

    @property
    def seconds_left(self) -> float | None:
        """How long until the next hold ends by itself, None without one."""
        now = self._clock.monotonic()
        ends = (*self._ends.values(), *(end + SPARE_SECONDS for end in self._holds.values()))
        return min((end - now for end in ends if end > now), default=None)
