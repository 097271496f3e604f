"""What the gateway itself costs: the time of one text turn, and turns per second of many people."""

import asyncio
import sqlite3
import tempfile
import time
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Final

from bench.chats import TEXT, chatting
from bench.report import emit, median, percentile, spread
from gateway.domain.ids import Place
from tests.fakes.loopback import chat
from tests.fakes.model import ScriptedModel

ROUNDS: Final = 5
CONVERSATIONS: Final = 100
TURNS_EACH: Final = 10
ONE_BY_ONE: Final = 200
WARM_UP: Final = 20
PLACES: Final = 20

COMMITS: Final = 4
"""Of a turn until its send: accepted, claimed, ended with its reply, the delivery claimed."""
FLOOR_IS: Final = f"{COMMITS} bare commits of one row, one after another"

MAX_MS: Final = 10.0
MIN_RATE: Final = 200.0


def _bare_database(folder: str) -> AbstractContextManager[sqlite3.Connection]:
    database = sqlite3.connect(Path(folder) / "floor.db", isolation_level=None)
    database.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT)"
    )
    return closing(database)


def floor(count: int) -> list[float]:
    """Return the ms of each of `count` sequences of the commits a turn cannot do without."""
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as folder, _bare_database(folder) as database:
        for _ in range(count):
            began = time.perf_counter()
            for _ in range(COMMITS):
                database.execute("INSERT INTO row (body) VALUES (?)", (TEXT,))
            taken.append((time.perf_counter() - began) * 1000)
    return taken


async def text_turns(count: int) -> list[float]:
    """Return the ms of each of `count` turns, one after another, from intake to the send."""
    async with chatting(ScriptedModel()) as chats:
        taken = [await chats.turn(chat(n % PLACES + 1)) for n in range(WARM_UP + count)]
    return taken[WARM_UP:]


async def turn_rate(*, conversations: int, turns_each: int) -> float:
    """Return turns committed per second while everybody asks again as soon as they are answered."""
    async with chatting(ScriptedModel()) as chats:

        async def talk(place: Place) -> None:
            for _ in range(turns_each):
                await chats.turn(place)

        began = time.perf_counter()
        async with asyncio.TaskGroup() as people:
            for n in range(conversations):
                people.create_task(talk(chat(n + 1)), name=f"person:{n}")
        took = time.perf_counter() - began
        done = chats.turns_done()
    assert done == conversations * turns_each, f"{done} turns are in the store"
    return done / took


def main() -> None:
    floors: list[float] = []
    turns: list[float] = []
    medians: list[float] = []
    rates: list[float] = []
    for _ in range(ROUNDS):
        floors += floor(ONE_BY_ONE)
        taken = asyncio.run(text_turns(ONE_BY_ONE))
        turns += taken
        medians.append(median(taken))
        rates.append(asyncio.run(turn_rate(conversations=CONVERSATIONS, turns_each=TURNS_EACH)))
    floor_ms, ours_ms, rate = median(floors), median(turns), median(rates)
    emit(
        {
            "name": "text_turn",
            "unit": "ms",
            "ours": round(ours_ms, 2),
            "floor": round(floor_ms, 2),
            "floor_is": FLOOR_IS,
            "ratio": round(ours_ms / floor_ms, 2),
            "p50_ms": round(ours_ms, 2),
            "p95_ms": round(percentile(turns, 0.95), 2),
            "spread": spread(medians),
            "goal": f"p50 <= {MAX_MS:g} ms from intake to the platform's send",
            "met": ours_ms <= MAX_MS,
        }
    )
    floor_rate = 1000 / floor_ms
    emit(
        {
            "name": "turn_rate",
            "unit": "per second",
            "ours": round(rate),
            "floor": round(floor_rate),
            "floor_is": FLOOR_IS,
            "ratio": round(rate / floor_rate, 2),
            "spread": spread(rates),
            "goal": f">= {MIN_RATE:g} committed, {CONVERSATIONS} conversations",
            "met": rate >= MIN_RATE,
        }
    )


if __name__ == "__main__":
    main()
