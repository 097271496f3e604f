"""What a failed connection means: the state it shows, and how long to wait. Never gives up."""

import random
from collections.abc import Iterable
from typing import Final

from adapters.connection import Connection
from gateway.domain.errors import AdapterError, AdapterUnauthorized, DeliveryDeferred

FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
UNAUTHORIZED_SECONDS: Final = 60.0
LONGEST_UNAUTHORIZED_SECONDS: Final = 600.0


class Recovery:
    """Counts failures in a row; each makes the next wait longer."""

    def __init__(self) -> None:
        self._failures = 0

    def worked(self) -> None:
        """Begin anew: something succeeded."""
        self._failures = 0

    def failed(self, error: AdapterError, connections: Iterable[Connection]) -> float:
        """Show what is wrong and return the seconds to wait."""
        self._failures += 1
        if isinstance(error, AdapterUnauthorized):
            for connection in connections:
                connection.unauthorized(f"Slack does not accept the token: {error}")
            return self._wait(UNAUTHORIZED_SECONDS, LONGEST_UNAUTHORIZED_SECONDS)
        for connection in connections:
            connection.degraded(f"Slack cannot be reached: {error}", sends=False)
        wait = self._wait(FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
        asked = error.retry_after if isinstance(error, DeliveryDeferred) else 0.0
        return max(wait, asked)

    def _wait(self, first: float, longest: float) -> float:
        seconds = min(first * 2.0 ** min(self._failures - 1, 16), longest)
        # Many programs that lost the same service must not come back at one moment.
        return seconds * random.uniform(1.0, 1.3)  # noqa: S311 - nothing secret
