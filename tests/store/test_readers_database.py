import asyncio
import os
from pathlib import Path

import pytest

from gateway.domain.errors import NotFound, StoreBusy
from store.readers import OpenReaders
from store.readers.database import POOL_SIZE, open_database
from tests.store.rows import Rows, open_rows

pytestmark = pytest.mark.anyio

COUNT = "SELECT count(*) AS n FROM message"


async def test_a_home_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "a b #1 100%25? ü.db"

    with open_rows(path):
        async with open_database(path) as database:
            row = await database.first(COUNT)

    assert row is not None
    assert row["n"] == 0
    assert all(name.startswith(path.name) for name in os.listdir(tmp_path))


async def test_a_reader_never_makes_a_database(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        async with open_database(tmp_path / "state.db"):
            pass

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("statement", ["DELETE FROM event", "PRAGMA user_version = 9"])
async def test_a_reader_cannot_write(tmp_path: Path, rows: Rows, statement: str) -> None:
    async with open_database(tmp_path / "state.db") as database:
        with pytest.raises(StoreBusy, match="readonly"):
            await database.all(statement)

    assert rows.connection.execute("SELECT count(*) FROM event").fetchone() == (1,)


async def test_a_reader_sees_one_state_while_others_write(tmp_path: Path, rows: Rows) -> None:
    conversation = rows.conversation()
    async with open_database(tmp_path / "state.db") as database, database.snapshot() as read:
        before = await read.first(COUNT)
        rows.message(conversation)
        during = await read.first(COUNT)
        after = await database.first(COUNT)

    assert [row["n"] for row in (before, during, after) if row is not None] == [0, 0, 1]


async def test_a_reader_that_comes_and_goes_leaves_the_writers_log_alone(
    tmp_path: Path, rows: Rows
) -> None:
    rows.message(rows.conversation())
    log = (tmp_path / "state.db-wal").stat()

    async with open_database(tmp_path / "state.db") as database:
        await database.first(COUNT)

    left = (tmp_path / "state.db-wal").stat()
    assert (left.st_ino, left.st_size) == (log.st_ino, log.st_size)
    assert log.st_size > 0


async def test_more_readers_than_connections_take_turns(readers: OpenReaders, rows: Rows) -> None:
    rows.conversation()

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        reads = [
            tasks.create_task(readers.ports.conversations.page(limit=1), name=f"read:{number}")
            for number in range(POOL_SIZE * 20)
        ]

    assert all(len(read.result().conversations) == 1 for read in reads)
