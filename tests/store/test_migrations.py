"""The schema: one declaration, one migration, and what happens between versions."""

import asyncio
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from gateway.domain.errors import ForeignDatabase, SchemaTooNew, StoreBroken
from gateway.domain.operations.inbound import Accepted
from gateway.runtime.clock import SystemClock
from store import open_store
from store.engine import APPLICATION_ID, SCHEMA_VERSION, open_connection
from store.migrations import migrate
from store.tables import metadata
from tests.store.samples import accept_text
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ALEMBICS_OWN = "alembic_version"


async def create(path: Path) -> None:
    async with open_store(path, clock=SystemClock()):
        pass


def shape(path: Path) -> dict[str, Any]:
    """Everything SQLite enforces, in a form that does not depend on how it was written down."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name, strict FROM pragma_table_list WHERE type = 'table'")
        names = {
            name: strict
            for name, strict in tables.fetchall()
            if not name.startswith("sqlite_") and name != ALEMBICS_OWN
        }
        return {name: _table(database, name, strict) for name, strict in names.items()}


def _table(database: sqlite3.Connection, name: str, strict: int) -> dict[str, Any]:
    sql = database.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
    columns = database.execute(
        'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)', (name,)
    ).fetchall()
    foreign = database.execute(
        'SELECT "from", "table", "to", on_delete FROM pragma_foreign_key_list(?)', (name,)
    ).fetchall()
    return {
        "strict": strict,
        "autoincrement": "AUTOINCREMENT" in sql,
        # SQLite lets a key column be NULL unless told otherwise; no code relies on either.
        "columns": [
            (c, kind, bool(filled or key), value, key) for c, kind, filled, value, key in columns
        ],
        "checks": sorted(_squeezed(check) for check in _checks(sql)),
        "foreign": sorted(foreign),
        "indexes": _indexes(database, name),
    }


def _indexes(database: sqlite3.Connection, table: str) -> list[Any]:
    found: list[Any] = []
    listed = database.execute(
        'SELECT name, "unique", origin, partial FROM pragma_index_list(?)', (table,)
    ).fetchall()
    for name, unique, origin, partial in listed:
        columns = database.execute(
            "SELECT name, desc FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno", (name,)
        ).fetchall()
        sql = database.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[
            0
        ]
        where = _squeezed(sql.partition(" WHERE ")[2]) if sql and partial else ""
        own_name = name if origin == "c" else ""
        found.append((own_name, unique, origin, tuple(columns), where))
    return sorted(found)


def _checks(sql: str) -> list[str]:
    found: list[str] = []
    for match in re.finditer(r"CHECK \(", sql):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            end += 1
        found.append(sql[match.end() : end - 1])
    return found


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


async def test_a_migrated_database_is_what_the_tables_declare(tmp_path: Path) -> None:
    await create(tmp_path / "migrated.db")
    engine = create_engine(f"sqlite:///{tmp_path / 'declared.db'}")
    metadata.create_all(engine)
    engine.dispose()

    migrated, declared = shape(tmp_path / "migrated.db"), shape(tmp_path / "declared.db")

    assert "question" in migrated
    assert set(migrated) == set(declared)
    for name, table in migrated.items():
        assert table == declared[name], name


async def test_a_new_database_is_private_ours_and_born_with_a_row(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    await create(path)

    assert path.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        assert database.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert database.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        meta = dict(database.execute("SELECT key, value FROM meta").fetchall())
        events = database.execute("SELECT id, kind FROM event").fetchall()
    assert meta["application"] == "hermes-gateway"
    assert meta["schema_version"] == str(SCHEMA_VERSION)
    assert len(meta["install_id"]) == 26
    assert events == [(1, "start")]


async def test_its_sidecar_files_are_private_too(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    async with open_store(path, clock=SystemClock()) as opened:
        await opened.store.accept(accept_text("hi", dedupe="1"))
        found = modes(tmp_path)

    assert found == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}


async def test_a_new_database_is_what_its_migration_would_have_made(tmp_path: Path) -> None:
    await create(tmp_path / "created.db")
    raw = open_connection(tmp_path / "migrated.db")
    with closing(raw):
        migrate(raw)

    assert everything(tmp_path / "created.db") == everything(tmp_path / "migrated.db")


def everything(path: Path) -> tuple[Any, ...]:
    """The whole schema as it was written down, its version, and every row but the random name."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        declared = database.execute(
            "SELECT type, name, replace(replace(replace(sql, char(10), ''), char(9), ''), ' ', '')"
            " FROM sqlite_schema ORDER BY name"
        ).fetchall()
        version = database.execute("PRAGMA user_version").fetchall()
        meta = database.execute("SELECT key, value FROM meta WHERE key <> 'install_id' ORDER BY 1")
        events = database.execute("SELECT * FROM event")
        alembics = database.execute("SELECT * FROM alembic_version")
        return declared, version, meta.fetchall(), events.fetchall(), alembics.fetchall()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


def foreign_application(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA application_id = 42")
        database.execute("CREATE TABLE theirs (x)")


def anonymous_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE theirs (x)")


def foreign_with_log(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE theirs (x)")


def no_database(path: Path) -> None:
    path.write_text("my notes, long enough to be no empty file\n" * 50)


@requirement("store.foreign_file.never_touched")
@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (foreign_application, ForeignDatabase),
        (anonymous_database, ForeignDatabase),
        (foreign_with_log, ForeignDatabase),
        (no_database, StoreBroken),
    ],
)
async def test_a_file_that_is_not_ours_is_refused_and_left_as_it_was(
    tmp_path: Path, make: Callable[[Path], None], refusal: type[Exception]
) -> None:
    path = tmp_path / "state.db"
    make(path)
    before = contents(tmp_path)

    with pytest.raises(refusal, match=r"state\.db"):
        await create(path)

    assert contents(tmp_path) == before


@requirement("fault.f48")
async def test_a_newer_schema_is_refused_without_a_write(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await create(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()

    with pytest.raises(SchemaTooNew, match="use the newer hermes"):
        await create(path)

    assert path.read_bytes() == before


@requirement("fault.f48")
async def test_an_older_schema_is_brought_up_with_its_pending_work(tmp_path: Path) -> None:
    """The only older schema so far is that of a database which is ours and still empty."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    async with open_store(path, clock=SystemClock()) as opened:
        accepted = await opened.store.accept(accept_text("hi", dedupe="1"))
    async with open_store(path, clock=SystemClock()) as opened:
        claim = await opened.store.claim_turn(worker="w")

    assert isinstance(accepted, Accepted)
    assert claim is not None
    assert [item.id for item in claim.inputs] == [accepted.inbound]


DYING = """
import asyncio, os, signal, sqlite3, sys
from pathlib import Path
from gateway.runtime.clock import SystemClock
from store import open_store

left = int(sys.argv[2])

def count(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def watched(*values, **named):
    connection = connect(*values, **named)
    connection.set_trace_callback(count)
    return connection

connect, sqlite3.connect = sqlite3.connect, watched

async def main():
    async with open_store(Path(sys.argv[1]), clock=SystemClock()):
        pass

asyncio.run(main())
"""
"""Creates a store and dies just before the nth statement it runs."""

OPENED, ID_NEXT, LOG_NEXT, SCHEMA_NEXT, AMID_TABLES, COMMIT_NEXT, FOLD_NEXT = (
    1,
    9,
    10,
    18,
    60,
    95,
    97,
)


@requirement("fault.f10")
@pytest.mark.parametrize(
    "nth", [OPENED, ID_NEXT, LOG_NEXT, SCHEMA_NEXT, AMID_TABLES, COMMIT_NEXT, FOLD_NEXT]
)
async def test_killed_while_it_is_made_the_store_opens_on_the_old_or_the_new_schema(
    tmp_path: Path, nth: int
) -> None:
    path = tmp_path / "state.db"
    killed = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", DYING, str(path), str(nth)], check=False
    )
    assert killed.returncode == -signal.SIGKILL

    async with open_store(path, clock=SystemClock()) as opened:
        assert isinstance(await opened.store.accept(accept_text("hi", dedupe="1")), Accepted)
