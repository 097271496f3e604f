"""The read-only connections to the file: a small pool that can neither write nor checkpoint.

Knows no statement and no value. A read is one statement, or several in one `snapshot`.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import URL, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from gateway.domain.errors import NotFound, StoreBusy
from store.codec import RowLike, decode_text

POOL_SIZE: Final = 3
BUSY_TIMEOUT_MS: Final = 10_000


class Read:
    """Runs statements on one connection; what it returns holds no cursor."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def begin(self) -> None:
        """Open a transaction; giving the connection back to the pool ends it."""
        await self._connection.exec_driver_sql("BEGIN")

    async def all(self, statement: str, **values: object) -> Sequence[RowLike]:
        """Return every row of a statement."""
        result = await self._connection.exec_driver_sql(statement, values)
        return result.mappings().all()

    async def first(self, statement: str, **values: object) -> RowLike | None:
        """Return the first row of a statement, or None."""
        result = await self._connection.exec_driver_sql(statement, values)
        return result.mappings().first()


class Database:
    """Reads the store's file through SQLAlchemy.

    Raises:
        StoreBusy: From every method; the file is locked, away or damaged, and nothing was read.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

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
            await read.begin()
            yield read

    @asynccontextmanager
    async def _read(self) -> AsyncGenerator[Read]:
        try:
            async with self._engine.connect() as connection:
                yield Read(connection)
        except DBAPIError as error:
            raise StoreBusy(str(error.orig)) from error
        except PoolTimeout as error:
            raise StoreBusy("too many reads at once") from error


@asynccontextmanager
async def open_database(path: Path) -> AsyncGenerator[Database]:
    """Open the file for reading; its connections are made when they are first needed.

    Raises:
        NotFound: There is no such file.
    """
    if not await asyncio.to_thread(path.exists):
        raise NotFound("database", path)
    url = URL.create(
        "sqlite+aiosqlite",
        # The driver resolves a relative one itself; only what a URI gives a meaning is escaped.
        database=f"file:{quote(str(path))}",
        query={"mode": "ro", "uri": "true"},
    )
    engine = create_async_engine(
        url,
        pool_size=POOL_SIZE,
        max_overflow=0,
        isolation_level="AUTOCOMMIT",
        pool_timeout=BUSY_TIMEOUT_MS / 1000,
    )
    event.listen(engine.sync_engine, "connect", _prepare)
    try:
        yield Database(engine)
    finally:
        await engine.dispose()


def _prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    driver: Any = connection.driver_connection
    driver.text_factory = decode_text
    cursor = connection.cursor()
    for pragma in (f"busy_timeout = {BUSY_TIMEOUT_MS}", "query_only = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
