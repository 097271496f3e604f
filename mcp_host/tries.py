"""When a server is tried again, by how its connection ended. Waits for nothing itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, assert_never

FIRST_PAUSES: Final = (1.0, 2.0, 4.0)
LOST_PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
JITTER: Final = 0.25
"""By how much of itself a pause may grow, so that servers lost together do not return together."""

STABLE_SECONDS: Final = 60.0
"""A connection that lasted this long starts afresh with its tries when it is lost."""


class Ending(Enum):
    """How an attempt ended. `HOPELESS`: trying again soon cannot help.

    By us: `ASKED`, because somebody wanted it; `AGED`, for a fresh process; `IDLE`, until it is used.
    """

    FAILED = auto()
    HOPELESS = auto()
    LOST = auto()
    ASKED = auto()
    AGED = auto()
    IDLE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of one attempt; `lasted` seconds from its start, or from its success when lost.

    `needs_login`: only a person who signs in can change it.
    """

    how: Ending
    reason: str = ""
    lasted: float = 0.0
    needs_login: bool = False


class Tries:
    """The pauses of one server; used up, only its parking and a probe are left."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._pauses: Iterator[float] = iter(FIRST_PAUSES)
        self._fresh = True

    def restart(self) -> None:
        """Begin again, as for a server that was never tried."""
        self._pauses, self._fresh = iter(FIRST_PAUSES), True

    def pause_after(self, end: Ended) -> float | None:
        """Return how long to wait before the next try; None to park the server."""
        match end.how:
            case Ending.HOPELESS:
                self._pauses = iter(())
            case Ending.LOST:
                # A server that always comes up and dies must not do so for ever.
                if self._fresh or end.lasted >= STABLE_SECONDS:
                    self._pauses, self._fresh = map(self.jittered, LOST_PAUSES), False
            case Ending.FAILED | Ending.ASKED | Ending.AGED | Ending.IDLE:
                pass
            case _:
                assert_never(end.how)
        return next(self._pauses, None)

    def jittered(self, seconds: float) -> float:
        """Return a little more than `seconds`."""
        return seconds * (1 + JITTER * self._jitter())
