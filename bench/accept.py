"""Durable intake with 50 waiters against raw sqlite3 at 100 accepts per commit, all FULL.

Two floors: four bare statements on four small tables, and our own statements on our own tables, so
that what the schema costs and what the program costs can be told apart.
"""

import asyncio
import itertools
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

from bench.report import emit, percentile, spread
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.message import InboundMessage
from gateway.domain.operations.inbound import Accept, Lane
from gateway.runtime.clock import SystemClock
from store import open_store
from store.sql import inbound as sql

CONVERSATIONS: Final = 200
WAITERS: Final = 50
SECONDS: Final = 4.0
ROUNDS: Final = 5
PER_COMMIT: Final = 100
TEXT: Final = "lorem ipsum dolor sit amet " * 8
GOAL: Final = 0.35
GOAL_P95_MS: Final = 10.0

FLOOR_SCHEMA: Final = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
CREATE TABLE conversation (id INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, last_at INTEGER);
CREATE TABLE inbound (
  id INTEGER PRIMARY KEY, dedupe TEXT NOT NULL UNIQUE, conv_id INTEGER, state TEXT, at INTEGER);
CREATE INDEX inbound_conv ON inbound (conv_id);
CREATE TABLE message (id INTEGER PRIMARY KEY, conv_id INTEGER, seq INTEGER, role TEXT, body TEXT, at INTEGER,
  UNIQUE (conv_id, seq));
CREATE TABLE event (id INTEGER PRIMARY KEY, kind TEXT, conv_id INTEGER, ref INTEGER);
"""


def floor(folder: Path) -> float:
    """Return accepts per second of four bare statements, 100 accepts a commit."""
    with closing(sqlite3.connect(folder / "floor.db", isolation_level=None)) as database:
        database.executescript(FLOOR_SCHEMA)
        database.executemany(
            "INSERT INTO conversation VALUES (?, 0, 0)", [(n,) for n in range(1, CONVERSATIONS + 1)]
        )
        done = 0
        start = time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            database.execute("BEGIN IMMEDIATE")
            for _ in range(PER_COMMIT):
                done += 1
                _floor_accept(database, done)
            database.execute("COMMIT")
        return done / (time.perf_counter() - start)


def _floor_accept(database: sqlite3.Connection, n: int) -> None:
    now, conversation = time.time_ns(), n % CONVERSATIONS + 1
    database.execute(
        "INSERT INTO inbound (dedupe, conv_id, state, at) VALUES (?, ?, 'new', ?) ON CONFLICT DO NOTHING",
        (f"k{n}", conversation, now),
    )
    (seq,) = database.execute(
        "UPDATE conversation SET last_seq = last_seq + 1, last_at = ? WHERE id = ? RETURNING last_seq",
        (now, conversation),
    ).fetchone()
    made = database.execute(
        "INSERT INTO message (conv_id, seq, role, body, at) VALUES (?, ?, 'user', ?, ?)",
        (conversation, seq, TEXT, now),
    )
    database.execute(
        "INSERT INTO event (kind, conv_id, ref) VALUES ('message', ?, ?)",
        (conversation, made.lastrowid),
    )


@cache
def _person(number: int) -> tuple[Place, Actor]:
    """Return who writes, and where: not made anew for each message, since it is not our cost."""
    person = str(100_000 + number)
    return (
        Place(platform="telegram", chat=person, chat_type=ChatType.DM),
        Actor(platform="telegram", id=person, name="Ana"),
    )


def message(n: int) -> InboundMessage:
    """Make the nth message, of one of the conversations."""
    place, sender = _person(n % CONVERSATIONS)
    return InboundMessage(
        place=place,
        native_id=str(n),
        dedupe=f"telegram::{n}",
        sender=sender,
        sent_at=datetime.now(UTC),
        text=TEXT,
    )


async def _one_each(path: Path) -> None:
    async with open_store(path, clock=SystemClock()) as opened:
        for n in range(CONVERSATIONS):
            await opened.store.accept(Accept(event=message(n), lane=Lane.TURN))


def same_tables(folder: Path) -> float:
    """Return accepts per second of our statements in raw sqlite3, 100 accepts a commit."""
    path = folder / "tables.db"
    asyncio.run(_one_each(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = FULL")
        done = CONVERSATIONS
        start = time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            database.execute("BEGIN IMMEDIATE")
            for _ in range(PER_COMMIT):
                done += 1
                _raw_accept(database, done)
            database.execute("COMMIT")
        return (done - CONVERSATIONS) / (time.perf_counter() - start)


def _raw_accept(database: sqlite3.Connection, n: int) -> None:
    now = time.time_ns() // 1_000_000
    values: dict[str, object] = {
        "dedupe": f"raw::{n}",
        "conv": n % CONVERSATIONS + 1,
        "lane": "turn",
        "actor": "telegram:100001",
        "payload": TEXT,
        "message": n,
        "sent_at": now,
        "now": now,
        "turn": True,
        "name": "Ana",
        "body": TEXT,
        "native_id": str(n),
        "reply_to": None,
        "added": 1,
    }
    database.execute(sql.MESSAGE_INBOUND, values)
    values["seq"], values["session"] = database.execute(sql.NEXT, values).fetchone()
    for statement in (sql.CONVERSATION, sql.MESSAGE, sql.COUNT, sql.EVENT):
        database.execute(statement, values)


async def ours(folder: Path) -> tuple[float, list[float]]:
    """Return accepts per second and each one's latency in ms."""
    latencies: list[float] = []
    numbers = itertools.count(1)
    async with open_store(folder / "state.db", clock=SystemClock()) as opened:
        start = time.perf_counter()

        async def waiter() -> None:
            while time.perf_counter() - start < SECONDS:
                event = message(next(numbers))
                before = time.perf_counter()
                await opened.store.accept(Accept(event=event, lane=Lane.TURN))
                latencies.append((time.perf_counter() - before) * 1_000)

        async with asyncio.TaskGroup() as tasks:
            for n in range(WAITERS):
                tasks.create_task(waiter(), name=f"waiter:{n}")
        took = time.perf_counter() - start
    return len(latencies) / took, latencies


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Accepts per second of one round, and the latencies of ours in ms."""

    ours: float
    small: float
    same: float
    latencies: list[float]


def measured() -> Round:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, same = floor(folder), same_tables(folder)
        rate, latencies = asyncio.run(ours(folder))
    return Round(ours=rate, small=small, same=same, latencies=latencies)


def main() -> None:
    rounds = [measured() for _ in range(ROUNDS)]
    _tell("accept", rounds, lambda item: item.small, "raw sqlite3, four bare statements")
    _tell("accept same tables", rounds, lambda item: item.same, "raw sqlite3, our own statements")


def _tell(
    name: str, rounds: list[Round], floor_of: Callable[[Round], float], floor_is: str
) -> None:
    ordered = sorted(rounds, key=lambda item: item.ours / floor_of(item))
    middle = ordered[ROUNDS // 2]
    ratio, p95 = middle.ours / floor_of(middle), percentile(middle.latencies, 0.95)
    emit(
        {
            "name": name,
            "unit": "per second",
            "ours": round(middle.ours),
            "floor": round(floor_of(middle)),
            "floor_is": f"{floor_is}, {PER_COMMIT} accepts per commit",
            "ratio": round(ratio, 3),
            "p50_ms": round(percentile(middle.latencies, 0.5), 2),
            "p95_ms": round(p95, 2),
            "spread": f"ratios {spread([item.ours / floor_of(item) for item in rounds])}",
            "goal": f">= {GOAL:.0%} of the floor, p95 <= {GOAL_P95_MS:g} ms, {WAITERS} waiters",
            "met": ratio >= GOAL and p95 <= GOAL_P95_MS,
        }
    )


if __name__ == "__main__":
    main()
