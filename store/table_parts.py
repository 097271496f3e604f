"""How tables are declared in short: columns as both engines have them, and indexes."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    text,
)

INTEGER64: Final = BigInteger().with_variant(Integer(), "sqlite")


def id_column() -> Column[int]:
    return Column("id", INTEGER64, primary_key=True)


def integer_column(
    name: str, *, null: bool = False, default: str | None = None, references: str | None = None
) -> Column[int]:
    return Column(
        name,
        INTEGER64,
        *_foreign(references),
        nullable=null,
        server_default=None if default is None else text(default),
    )


def text_column(
    name: str,
    *,
    null: bool = False,
    default: str | None = None,
    one_of: str = "",
    references: str | None = None,
    key: bool = False,
    unique: bool | None = None,
) -> Column[str]:
    return Column(
        name,
        Text(),
        *_foreign(references),
        *_choice(name, one_of),
        primary_key=key,
        nullable=null,
        unique=unique,
        server_default=None if default is None else text(default),
    )


def _foreign(target: str | None) -> list[ForeignKey]:
    return [] if target is None else [ForeignKey(target)]


def _choice(name: str, values: str) -> list[CheckConstraint]:
    if not values:
        return []
    # Not IN: SQLite makes a table of the list each time it checks a row, a quarter of an accept.
    return [CheckConstraint(" OR ".join(f"{name} = '{value}'" for value in values.split()))]


def add_index(
    table: Table, name: str, *columns: str, unique: bool = False, where: str | None = None
) -> None:
    parts: list[Any] = []
    for column in columns:
        plain, _, direction = column.partition(" ")
        parts.append(table.c[plain].desc() if direction == "DESC" else table.c[plain])
    condition = None if where is None else text(where)
    Index(name, *parts, unique=unique, sqlite_where=condition, postgresql_where=condition)
