"""What an operation works with inside a group commit: statements, the time, known places.

Statements go to the driver's cursor: SQLAlchemy's `exec_driver_sql` costs 25 µs each here, the
cursor 4 µs, and accepting a message takes five.
"""

import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from gateway.domain.ids import ConversationId, Place

MAX_PLACES: Final = 10_000
"""Conversations remembered by id; beyond that the memory starts anew."""

_SAVEPOINT: Final = "SAVEPOINT operation"
_RELEASE: Final = "RELEASE operation"
_UNDO: Final = "ROLLBACK TO operation"
_LAST_MESSAGE: Final = "SELECT coalesce(max(id), 0) FROM message"
_NOTHING: Final[Mapping[str, object]] = {}

_Take = Callable[[Mapping[str, object]], tuple[object, ...]]

_NAME: Final = re.compile(r":([a-z_]+)")


def positional(sql: str) -> tuple[str, _Take]:
    """Return a statement with its values by place, and what takes them from those by name.

    The driver looks each name up anew at every run, which costs as much as the rest of it.
    """
    names = _NAME.findall(sql)
    text = _NAME.sub("?", sql)
    match names:
        case []:
            return text, lambda _: ()
        case [name]:
            return text, lambda values: (values[name],)
        case _:
            return text, itemgetter(*names)


class Unguarded(Exception):
    """An operation must be undone alone, and no savepoint was set for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The rows of a place."""

    conversation: ConversationId
    chat: int
    user_name: str


class Work:
    """One group of operations in one transaction, each undone alone when it fails.

    Owned by the writer thread. `now` is the time of the whole group in milliseconds. Savepoints
    are set only once an operation has failed (`guarded`): they cost a fifth of an accept.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._cursor.row_factory = sqlite3.Row
        self._statements: dict[str, tuple[str, _Take]] = {}
        self._places: dict[Place, Known] = {}
        self._new_places: dict[Place, Known] = {}
        self._moved = False
        self._message = 0
        self._guarded = False
        self.now = 0
        self.wrote_event = False

    # --- for operations ---------------------------------------------------------

    def one(self, sql: str, values: Mapping[str, object] = _NOTHING) -> sqlite3.Row | None:
        """Run a statement and return its first row."""
        row: sqlite3.Row | None = self._execute(sql, values).fetchone()
        return row

    def all(self, sql: str, values: Mapping[str, object] = _NOTHING) -> list[sqlite3.Row]:
        """Run a statement and return its rows."""
        return self._execute(sql, values).fetchall()

    def run(self, sql: str, values: Mapping[str, object] = _NOTHING) -> int:
        """Run a statement and return how many rows it changed."""
        return self._execute(sql, values).rowcount

    def insert(self, sql: str, values: Mapping[str, object] = _NOTHING) -> int:
        """Run an INSERT of one row and return its id, 0 when the row was refused as known.

        Quicker than RETURNING, which takes a table of its own in SQLite.
        """
        cursor = self._execute(sql, values)
        return (cursor.lastrowid or 0) if cursor.rowcount else 0

    def next_message(self) -> int:
        """Return the id of the message inserted next; there is one writer, so nobody else takes it."""
        self._message = (self._message or self.value(_LAST_MESSAGE)) + 1
        return self._message

    def value(self, sql: str, values: Mapping[str, object] = _NOTHING) -> Any:
        """Run a statement that returns a row for certain, and return its first column."""
        return self._execute(sql, values).fetchone()[0]

    def _execute(self, sql: str, values: Mapping[str, object]) -> sqlite3.Cursor:
        known = self._statements.get(sql)
        if known is None:
            known = self._statements[sql] = positional(sql)
        text, take = known
        return self._cursor.execute(text, take(values))

    def undo(self) -> None:
        """Take back what this operation has written so far; it may be started anew for that."""
        if not self._guarded:
            raise Unguarded
        self._cursor.execute(_UNDO)
        self._forget()

    def known(self, place: Place) -> Known | None:
        """Return the rows of a place when they were seen before."""
        return self._new_places.get(place) or self._places.get(place)

    def remember(self, place: Place, known: Known) -> None:
        """Remember the rows of a place from the commit on."""
        self._new_places[place] = known

    def moved(self) -> None:
        """Forget all places: their rows have changed."""
        self._moved = True
        self._forget()

    # --- for the writer -----------------------------------------------------------

    @property
    def changes(self) -> int:
        """Rows changed since the connection was opened."""
        return self._connection.total_changes

    def begin(self, now: int, *, guarded: bool = False) -> None:
        """Start a group; waits for other writers as long as the driver does."""
        self._guarded = guarded
        self._message = 0
        self.now = now
        self.wrote_event = False
        self._moved = False
        self._new_places.clear()
        self._cursor.execute("BEGIN IMMEDIATE")

    def mark(self) -> None:
        """Start one operation of the group."""
        if self._guarded:
            self._cursor.execute(_SAVEPOINT)

    def keep(self) -> None:
        """End an operation that went well."""
        if self._guarded:
            self._cursor.execute(_RELEASE)

    def drop(self) -> None:
        """End an operation that failed, with nothing of it left.

        Raises:
            Unguarded: The whole group must be repeated with savepoints.
        """
        self.undo()
        self._cursor.execute(_RELEASE)

    def commit(self) -> None:
        """Make the group durable."""
        self._cursor.execute("COMMIT")
        if self._moved or len(self._places) > MAX_PLACES:
            self._places.clear()
        self._places.update(self._new_places)

    def rollback(self) -> None:
        """Leave nothing of the group."""
        self._new_places.clear()
        if self._connection.in_transaction:
            self._cursor.execute("ROLLBACK")

    def _forget(self) -> None:
        # What earlier operations of the group found is found again; that is cheaper than telling apart.
        self._new_places.clear()
        if self._moved:
            self._places.clear()
