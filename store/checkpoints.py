"""When the write-ahead log is folded into the database file: by the writer, between commits.

Only the connection that writes checkpoints: SQLite before 3.51.3 can lose a commit when another
connection checkpoints at the same time.
"""

import sqlite3
from typing import Final

PAGES: Final = 4_000
"""Pages of log (16 MB) after which it is folded, without waiting for readers.

The same pages of the indexes are written by every commit: folding a thousand pages at a time, four
times as often, doubles the p95 of an accept.
"""

_FIRST_GUESS: Final = 3.0
_LEAST: Final = 0.05
_MOST: Final = 20.0


class Checkpoints:
    """Counts changed rows, since the driver does not tell pages, and learns how many pages they make."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._pages_per_change = _FIRST_GUESS
        self._seen = 0
        self._left = 0
        self._folded = -1

    @property
    def pending(self) -> bool:
        """True when there is anything to fold."""
        return self._connection.total_changes != self._folded

    def step(self) -> None:
        """Fold about every `PAGES` pages, as far as readers let it."""
        changes = self._connection.total_changes - self._seen
        if changes * self._pages_per_change < PAGES:
            return
        log, done = self._checkpoint("PASSIVE")
        self._pages_per_change = min(max((log - self._left) / changes, _LEAST), _MOST)
        self._seen += changes
        self._left = log if done < log else 0

    def fold(self) -> None:
        """Fold all of it and empty the log file; readers of old rows put it off."""
        if not self.pending:
            return
        changes = self._connection.total_changes
        log, done = self._checkpoint("TRUNCATE")
        self._seen = changes
        self._left = log if done < log else 0
        if done >= log:
            self._folded = changes

    def _checkpoint(self, mode: str) -> tuple[int, int]:
        row: tuple[int, int, int] = self._connection.execute(
            f"PRAGMA wal_checkpoint({mode})"
        ).fetchone()
        busy, log, done = row
        return (max(log, 0), -1 if busy else max(done, 0))
