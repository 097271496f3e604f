"""Brings a database up to the schema this program knows: all of it in one transaction, or nothing.

SQLAlchemy and Alembic are imported only when there is something to do.
"""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from store.engine import SCHEMA_VERSION

if TYPE_CHECKING:
    from sqlalchemy import Connection


def bring_up(raw: sqlite3.Connection, path: Path) -> None:
    """Migrate to `SCHEMA_VERSION`; killed at any moment, the old or the new schema is there.

    Raises:
        StoreBroken: The database says nothing about its schema, or the migration failed.
        sqlite3.Error: The database was locked or cannot be written.
    """
    if _version(raw) != SCHEMA_VERSION:
        _migrate(raw, path)


def _version(raw: sqlite3.Connection) -> int:
    row: tuple[int] = raw.execute("PRAGMA user_version").fetchone()
    return row[0]


def _migrate(raw: sqlite3.Connection, path: Path) -> None:
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import StaticPool

    # Not disposed of: that would close the connection, which is the caller's.
    engine = create_engine(
        "sqlite://", creator=lambda: raw, poolclass=StaticPool, isolation_level="AUTOCOMMIT"
    )
    try:
        with engine.connect() as connection:
            _upgrade(connection, raw)
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise error.orig from error
        raise


def _upgrade(connection: "Connection", raw: sqlite3.Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    # SQLAlchemy's own transaction keeps Alembic from ending ours; its rollback ends both.
    with connection.begin():
        raw.execute("BEGIN IMMEDIATE")
        # Another program may have been quicker while this one waited for the lock.
        if _version(raw) < SCHEMA_VERSION:
            command.upgrade(config, f"{SCHEMA_VERSION:04d}")
            _set_version(raw)
        raw.execute("COMMIT")


def _set_version(raw: sqlite3.Connection) -> None:
    raw.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(SCHEMA_VERSION),))
    raw.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
