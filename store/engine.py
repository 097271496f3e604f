"""Opens the database file for writing: checked first, then made ours. The only writer of the file.

A file that is not ours, is newer, damaged or read-only is refused before anything is written; an
empty one is never put in the place of a damaged one.
"""

import os
import sqlite3
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

from gateway.domain.errors import ForeignDatabase, SchemaTooNew, StoreBroken
from store.codec import decode_text

APPLICATION_ID: Final = 1213353287
"""'HRMG', in the header of every database of ours."""

SCHEMA_VERSION: Final = 1
"""What this program knows; `PRAGMA user_version` and `meta.schema_version` hold the file's."""

CHECK_SECONDS: Final = 1.0
"""How long the check for damage may take at open; a large file is checked as far as that goes."""

LOCK_SECONDS: Final = 0.2
"""How long the driver itself waits for a lock: the writer repeats on its own, and says that it waits."""

_PROGRESS_STEPS: Final = 20_000
_STATEMENT_CACHE: Final = 256

_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    f"PRAGMA busy_timeout = {int(LOCK_SECONDS * 1000)}",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA temp_store = MEMORY",
)


def database_uri(path: Path, *, mode: str, immutable: bool = False) -> str:
    """Return the URI by which SQLite opens a file in a mode (`ro`, `rw`, `rwc`)."""
    return f"file:{quote(str(path))}?mode={mode}" + ("&immutable=1" if immutable else "")


def open_connection(path: Path) -> sqlite3.Connection:
    """Return the one writing connection, in autocommit, on a database that is ours.

    Its schema may still be older than the program (`store.migrations.bring_up`).

    Raises:
        ForeignDatabase: The file belongs to another application.
        SchemaTooNew: A newer version of this program wrote it.
        StoreBroken: It cannot be a database of ours any more, or not be written.
        sqlite3.Error: It could not be opened; `store.faults.error_at_open` says what that means.
    """
    new = _is_new(path)
    if not new:
        _check_file(path)
    raw = _connect(path, new=new)
    try:
        _claim_file(raw, path)
    except BaseException:
        raw.close()
        raise
    return raw


def open_reader(path: Path, *, busy_seconds: float) -> sqlite3.Connection:
    """Return a connection that can neither write nor make the file; rows are read by column name.

    Text that is no UTF-8 fails it, until its `text_factory` is `decode_text`: that costs a third more.

    Raises:
        sqlite3.Error: It could not be opened.
    """
    raw = sqlite3.connect(
        database_uri(path, mode="ro"), uri=True, timeout=busy_seconds, isolation_level=None
    )
    raw.row_factory = sqlite3.Row
    raw.execute("PRAGMA query_only = ON")
    return raw


def is_ready(raw: sqlite3.Connection, path: Path) -> bool:
    """Say whether a database holds our tables by now, or is still being made.

    Raises:
        ForeignDatabase: The file belongs to another application.
        SchemaTooNew: A newer version of this program wrote it.
    """
    version = _number(raw, "PRAGMA user_version")
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(str(path), version, SCHEMA_VERSION)
    if _number(raw, "PRAGMA application_id") != APPLICATION_ID and _number(
        raw, "SELECT count(*) FROM sqlite_schema"
    ):
        raise ForeignDatabase(str(path))
    return version > 0


def _is_new(path: Path) -> bool:
    if _size(path):
        return False
    # The file is never empty once its log is not: SQLite would throw that log away.
    if _size(Path(f"{path}-wal")):
        raise StoreBroken(str(path), "it is missing or empty, but its log is there")
    return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise StoreBroken(str(path), error.strerror or "cannot be read") from error


def _connect(path: Path, *, new: bool) -> sqlite3.Connection:
    # SQLite creates with mode 0644 less the umask; its sidecar files copy the database's mode.
    before = os.umask(0o077) if new else None
    try:
        raw = sqlite3.connect(
            database_uri(path, mode="rwc" if new else "rw"),
            uri=True,
            timeout=LOCK_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENT_CACHE,
        )
    finally:
        if before is not None:
            os.umask(before)
    raw.text_factory = decode_text
    return raw


def _check_file(path: Path) -> None:
    """Judge an existing file without a lock, a sidecar file or a byte written."""
    if _application_id(path) != APPLICATION_ID:
        raise ForeignDatabase(str(path))
    if Path(f"{path}-journal").exists():
        # Killed within its very first write; opening it for writing takes that back.
        return
    reader = sqlite3.connect(database_uri(path, mode="ro"), uri=True, timeout=LOCK_SECONDS)
    try:
        _check_content(reader, path)
    finally:
        reader.close()


def _application_id(path: Path) -> int:
    # The id is in the file itself from its first write on, never only in the log.
    header = sqlite3.connect(database_uri(path, mode="ro", immutable=True), uri=True)
    try:
        return _number(header, "PRAGMA application_id")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_CORRUPT or not Path(f"{path}-wal").exists():
            raise
    finally:
        header.close()
    # Cut off while the log was folded into it, the file is whole only together with the log.
    reader = sqlite3.connect(database_uri(path, mode="ro"), uri=True, timeout=LOCK_SECONDS)
    try:
        return _number(reader, "PRAGMA application_id")
    finally:
        reader.close()


def _check_content(reader: sqlite3.Connection, path: Path) -> None:
    version = _number(reader, "PRAGMA user_version")
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(str(path), version, SCHEMA_VERSION)
    end = time.monotonic() + CHECK_SECONDS
    reader.set_progress_handler(lambda: time.monotonic() > end, _PROGRESS_STEPS)
    try:
        problem: str = reader.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return
    if problem != "ok":
        raise StoreBroken(str(path), problem.splitlines()[-1])


def _claim_file(raw: sqlite3.Connection, path: Path) -> None:
    for pragma in _PRAGMAS:
        raw.execute(pragma)
    if _number(raw, "PRAGMA application_id") != APPLICATION_ID:
        if _number(raw, "SELECT count(*) FROM sqlite_schema"):
            raise ForeignDatabase(str(path))
        # In the classic journal, so that the id is in the file before anything else is.
        raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    mode: str = raw.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreBroken(str(path), "its file system has no shared memory for a write-ahead log")
    # A file that may not be written is opened for reading without a word, and even BEGIN IMMEDIATE
    # then only reads: the first write shows it.
    version = _number(raw, "PRAGMA user_version")
    raw.execute("BEGIN IMMEDIATE")
    raw.execute(f"PRAGMA user_version = {version}")
    raw.execute("ROLLBACK")


def _number(connection: sqlite3.Connection, sql: str) -> int:
    row: tuple[int] = connection.execute(sql).fetchone()
    return row[0]
