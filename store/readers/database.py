"""The read-only connections to the file: a small pool that can neither write nor checkpoint.

Knows no statement and no value. A read is one statement, or several in one `snapshot`. The
driver's own connections, not an engine's: a statement is one visit to the connection's thread
instead of four, and reading is half of what a turn costs.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import aiosqlite

from gateway.domain.errors import NotFound, StoreBusy
from store.codec import RowLike, decode_text
from store.engine import is_ready, open_reader

POOL_SIZE: Final = 3
BUSY_SECONDS: Final = 10.0
"""How long a read waits for a lock, and for a connection."""
_UNDECODABLE: Final = "decode to UTF-8"
_UNUSED_CHUNK: Final = 64
"""Rows the driver would fetch at a time from a cursor; whole results are fetched here."""


class Read:
    """Runs statements on one connection; what it returns holds no cursor."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def all(self, statement: str, **values: object) -> Sequence[RowLike]:
        """Return every row of a statement."""
        try:
            rows = list(await self._connection.execute_fetchall(statement, values))
        except sqlite3.OperationalError as error:
            if _UNDECODABLE not in str(error):
                raise
            # From here on this connection reads such text too, and a little slower.
            self._connection.text_factory = decode_text
            rows = list(await self._connection.execute_fetchall(statement, values))
        if not rows:
            return rows
        # A row of the driver looks each name up among all of them, again and again.
        names = rows[0].keys()
        return [dict(zip(names, row, strict=True)) for row in rows]

    async def first(self, statement: str, **values: object) -> RowLike | None:
        """Return the first row of a statement, or None."""
        rows = await self.all(statement, **values)
        return rows[0] if rows else None

    async def begin(self) -> None:
        """Let the following statements see the store as the first of them finds it."""
        await self._connection.execute_fetchall("BEGIN")

    async def end(self) -> None:
        """End what `begin` began."""
        await self._connection.rollback()


class _Nothing(Read):
    """Reads a store that is not there yet."""

    def __init__(self) -> None:
        pass

    async def all(self, statement: str, **values: object) -> Sequence[RowLike]:
        del statement, values
        return ()

    async def begin(self) -> None:
        return

    async def end(self) -> None:
        return


class _NotYet(Exception):
    """The file is not there, or nothing is in it."""


class Database:
    """Reads the store's file; made by `open_database`.

    Raises:
        StoreBusy: From every method; the file is locked, away or damaged, and nothing was read.
        ForeignDatabase, SchemaTooNew: Likewise; it is none that this version can read.
    """

    def __init__(self, path: Path, *, late: bool = False) -> None:
        self._path = path
        self._late = late
        self._free = asyncio.Semaphore(POOL_SIZE)
        self._idle: list[aiosqlite.Connection] = []

    async def all(self, statement: str, **values: object) -> Sequence[RowLike]:
        """Return every row of one statement."""
        async with self._read() as read:
            return await read.all(statement, **values)

    async def first(self, statement: str, **values: object) -> RowLike | None:
        """Return the first row of one statement, or None."""
        async with self._read() as read:
            return await read.first(statement, **values)

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[Read]:
        """Let all statements inside see the store as the first one found it."""
        async with self._read() as read:
            try:
                await read.begin()
                yield read
            finally:
                await read.end()

    async def close(self) -> None:
        """End the connections; none may be in use."""
        await _end(self._idle)

    @asynccontextmanager
    async def _read(self) -> AsyncGenerator[Read]:
        await self._turn()
        connection: aiosqlite.Connection | None = None
        try:
            connection = self._idle.pop() if self._idle else await self._connect()
            yield Read(connection)
        except _NotYet:
            yield _Nothing()
        except sqlite3.Error as error:
            # The next read opens the file anew: what went wrong may lie in this connection.
            if connection is not None:
                await _end([connection])
                connection = None
            raise StoreBusy(str(error)) from error
        finally:
            if connection is not None:
                self._idle.append(connection)
            self._free.release()

    async def _turn(self) -> None:
        try:
            async with asyncio.timeout(BUSY_SECONDS):
                await self._free.acquire()
        except TimeoutError as error:
            raise StoreBusy("too many reads at once") from error

    async def _connect(self) -> aiosqlite.Connection:
        if self._late:
            await asyncio.to_thread(self._check)
            self._late = False
        return await aiosqlite.Connection(
            lambda: open_reader(self._path, busy_seconds=BUSY_SECONDS), _UNUSED_CHUNK
        )

    def _check(self) -> None:
        if not self._path.exists():
            raise _NotYet
        with closing(open_reader(self._path, busy_seconds=BUSY_SECONDS)) as raw:
            if not is_ready(raw, self._path):
                raise _NotYet


async def _end(connections: Iterable[aiosqlite.Connection]) -> None:
    # All are told before one is waited for: being cancelled meanwhile leaves no thread behind.
    # The driver leaves open what its future holds: nothing of interest.
    ends: list[asyncio.Future[Any] | None] = [each.stop() for each in connections]  # pyright: ignore[reportUnknownMemberType]
    for end in ends:
        if end is not None:
            await end


@asynccontextmanager
async def open_database(path: Path, *, late: bool = False) -> AsyncGenerator[Database]:
    """Open the file for reading; its connections are made when they are first needed.

    `late`: it may be made only after this; until then it reads as an empty one.

    Raises:
        NotFound: There is no such file.
    """
    if not (late or await asyncio.to_thread(path.exists)):
        raise NotFound("database", path)
    database = Database(path, late=late)
    try:
        yield database
    finally:
        await database.close()
