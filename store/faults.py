"""What an error of the driver means: wait, give up, or the one operation's own fault."""

import sqlite3
from enum import Enum
from typing import Final

from gateway.domain.errors import StoreBroken, StoreBusy, StoreError


class Trouble(Enum):
    """How a failed statement is treated."""

    BUSY = "busy"
    """Locked, full, or the disk failed: nothing is lost, everything is repeated."""
    BROKEN = "broken"
    """The file is damaged or not a database: nothing more may be written."""
    VALUE = "value"
    """Only this operation's values were refused; others go on."""


_BUSY: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
    }
)
_BROKEN: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_WAITABLE_AT_OPEN: Final = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
)
_PRIMARY: Final = 0xFF


def primary_code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code; None for an error of the Python module itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY


def trouble_of(error: sqlite3.Error) -> Trouble:
    """Say how a failure while the gateway runs is treated."""
    code = primary_code(error)
    if code in _BUSY:
        return Trouble.BUSY
    if code in _BROKEN:
        return Trouble.BROKEN
    return Trouble.VALUE


def error_at_open(path: str, error: sqlite3.Error) -> StoreError:
    """Translate a failure to open: only a lock is worth waiting for."""
    if primary_code(error) in _WAITABLE_AT_OPEN:
        return StoreBusy(str(error))
    return StoreBroken(path, str(error))
