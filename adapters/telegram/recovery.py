"""What a failed connection means: the state it shows, and how long to wait. Never gives up."""

import random
from typing import Final

from telegram import error as sdk

from adapters.connection import Connection
from adapters.telegram.errors import cause_of, retry_seconds, says

FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
CONFLICT_SECONDS: Final = 30.0
LONGEST_CONFLICT_SECONDS: Final = 300.0
UNAUTHORIZED_SECONDS: Final = 60.0
LONGEST_UNAUTHORIZED_SECONDS: Final = 600.0

CONFLICT: Final = "another program reads this bot's messages with the same token"
WEBHOOK: Final = "a webhook is registered for this bot"
UNAUTHORIZED: Final = "Telegram does not accept the token"


class Recovery:
    """Counts failures in a row; each makes the next wait longer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._failures = 0

    def worked(self) -> None:
        """Begin anew: something succeeded."""
        self._failures = 0

    def failed(self, error: sdk.TelegramError) -> float:
        """Show what is wrong and return the seconds to wait."""
        self._failures += 1
        if isinstance(error, sdk.InvalidToken):
            self._connection.unauthorized(UNAUTHORIZED)
            return self._wait(UNAUTHORIZED_SECONDS, LONGEST_UNAUTHORIZED_SECONDS)
        if isinstance(error, sdk.Conflict):
            self._connection.degraded(WEBHOOK if is_webhook(error) else CONFLICT)
            return self._wait(CONFLICT_SECONDS, LONGEST_CONFLICT_SECONDS)
        if isinstance(error, sdk.RetryAfter):
            self._connection.degraded("Telegram asked for a pause")
            return retry_seconds(error)
        self._connection.degraded(f"Telegram cannot be reached: {cause_of(error)}", sends=False)
        return self._wait(FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)

    def _wait(self, first: float, longest: float) -> float:
        seconds = min(first * 2.0 ** min(self._failures - 1, 16), longest)
        # Many programs that lost the same service must not come back at one moment.
        return seconds * random.uniform(1.0, 1.3)  # noqa: S311 - nothing secret


def is_webhook(error: sdk.Conflict) -> bool:
    """Whether it is a webhook, not another poller, that gets the updates."""
    return says(error, "webhook")
