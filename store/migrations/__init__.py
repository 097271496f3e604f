"""Brings a database up to the schema this program knows; each step in one transaction, or nothing.

SQLAlchemy and Alembic are imported only when an older schema must be changed: a new database gets
the first one from its statements. They would cost a new home's first start half a second, and the
service 24 MiB until its next.
"""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Final

from store.engine import SCHEMA_VERSION
from store.migrations.first_schema import statements

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FIRST: Final = 1
_ALEMBICS_OWN: Final = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
    " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
"""Where it looks up what has been done."""


def bring_up(raw: sqlite3.Connection) -> None:
    """Make or migrate to `SCHEMA_VERSION`; killed at any moment, an old or the new schema is there.

    Raises:
        sqlite3.Error: The database was locked or cannot be written.
    """
    if _version(raw) == 0:
        create(raw)
    if _version(raw) != SCHEMA_VERSION:
        migrate(raw)


def create(raw: sqlite3.Connection) -> None:
    """Give a database that is ours and empty its first schema, as the migration to it would.

    Raises:
        sqlite3.Error: The database was locked or cannot be written.
    """
    raw.execute("BEGIN IMMEDIATE")
    try:
        # Another program may have been quicker while this one waited for the lock.
        if _version(raw) == 0:
            raw.execute(_ALEMBICS_OWN)
            raw.execute("INSERT INTO alembic_version VALUES (?)", (f"{_FIRST:04d}",))
            for statement, values in statements():
                raw.execute(statement, values)
            _set_version(raw, _FIRST)
        raw.execute("COMMIT")
    except BaseException:
        if raw.in_transaction:
            raw.execute("ROLLBACK")
        raise


def _version(raw: sqlite3.Connection) -> int:
    row: tuple[int] = raw.execute("PRAGMA user_version").fetchone()
    return row[0]


def migrate(raw: sqlite3.Connection) -> None:
    """Run the migrations a database lacks.

    Raises:
        sqlite3.Error: The database was locked or cannot be written.
    """
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
            _set_version(raw, SCHEMA_VERSION)
        raw.execute("COMMIT")


def _set_version(raw: sqlite3.Connection, version: int) -> None:
    raw.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(version),))
    raw.execute(f"PRAGMA user_version = {version}")
