"""The writer: groups, waiting, failing alone, and folding its log."""

import asyncio
import dataclasses
import inspect
import os
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.errors import Conflict, StoreBusy, StoreError
from gateway.domain.ids import SessionId
from gateway.domain.operations.inbound import Accepted
from gateway.ports import Store
from gateway.runtime.clock import SystemClock
from store import OpenStore, open_store
from store.checkpoints import PAGES
from store.work import Work
from store.writer import DEFAULT_PACE, Writer
from tests.store.faults.foreign import lock_held
from tests.store.samples import accept_text
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

FRAME_BYTES = 4096 + 24
BEYOND_THE_DRIVER = 1.0
"""Seconds; five times as long as the driver waits for a lock (12 s against its 2.4 s, in short)."""


@asynccontextmanager
async def opened_writer(
    path: Path, *, on_commit: Callable[[bool], None] = lambda _: None, **pace: float
) -> AsyncGenerator[Writer]:
    writer = Writer(
        path,
        clock=SystemClock(),
        pace=dataclasses.replace(DEFAULT_PACE, **pace),
        on_commit=on_commit,
    )
    await writer.start()
    try:
        yield writer
    finally:
        await writer.close()


def note(value: str) -> Any:
    """An operation that leaves a trace."""

    def run(work: Work) -> str:
        work.run("INSERT INTO meta (key, value) VALUES (:key, '')", {"key": value})
        return value

    return run


def notes(path: Path) -> set[str]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT key FROM meta WHERE value = ''").fetchall()
    return {row[0] for row in rows}


def size(path: Path, suffix: str) -> int:
    """How large a file beside the database is; by `stat`, as nobody may open it."""
    try:
        return os.stat(f"{path}{suffix}").st_size
    except FileNotFoundError:
        return 0


async def stored(opened: OpenStore) -> list[str]:
    messages = await opened.readers.conversations.messages(SessionId(1), limit=10_000)
    return [item.text for item in messages]


async def test_a_result_is_given_only_once_others_can_see_it(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened_writer(path) as writer:
        for number in range(20):
            assert await writer.do(note(f"{number}")) == f"{number}"
            assert f"{number}" in notes(path)


async def test_one_failing_operation_fails_alone(tmp_path: Path) -> None:
    """All in one group: a refused value, a rule broken in the code, an unknown column type."""
    path = tmp_path / "state.db"

    def broken(work: Work) -> None:
        note("half")(work)
        raise LookupError("a bug")

    def twice(work: Work) -> None:
        note("half")(work)
        note("first")(work)

    def unbindable(work: Work) -> None:
        note("half")(work)
        work.run("SELECT :value", {"value": object()})

    async with opened_writer(path) as writer:
        results = await asyncio.gather(
            *(writer.do(run) for run in (note("first"), broken, twice, unbindable, note("last"))),
            return_exceptions=True,
        )

    assert [type(result) for result in results] == [str, LookupError, Conflict, StoreError, str]
    assert notes(path) == {"first", "last"}


async def test_operations_of_cancelled_callers_are_carried_out(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened_writer(path) as writer:
        task = asyncio.create_task(writer.do(note("kept")), name="cancelled")
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await writer.do(note("after"))

    assert notes(path) == {"kept", "after"}


async def test_closing_carries_out_what_was_handed_over_and_takes_no_more(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened_writer(path) as writer:
        tasks = [
            asyncio.create_task(writer.do(note(f"{number}")), name=f"note:{number}")
            for number in range(50)
        ]
        await asyncio.sleep(0)
        await writer.close()
        assert {await task for task in tasks} == notes(path)
        with pytest.raises(StoreBusy):
            await writer.do(note("late"))

    assert len(notes(path)) == 50
    assert size(path, "-wal") == 0


@requirement("case.db1")
async def test_a_lock_longer_than_the_driver_waits_delays_a_message_and_loses_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with open_store(path, clock=SystemClock()) as opened:
        await opened.store.accept(accept_text("before", dedupe="0"))
        with lock_held(path):
            until = time.monotonic() + BEYOND_THE_DRIVER
            arriving = asyncio.create_task(
                opened.store.accept(accept_text("during", dedupe="1")), name="accept"
            )
            await eventually_async(lambda: time.monotonic() > until)
            waiting = not arriving.done()
            degraded = opened.health().busy_since is not None
        await arriving
        await opened.store.accept(accept_text("after", dedupe="2"))
        healed = opened.health().busy_since is None
        texts = await stored(opened)

    assert (waiting, degraded, healed) == (True, True, True)
    assert texts == ["before", "during", "after"]


async def test_a_caller_is_told_when_the_lock_outlasts_the_limit_and_nothing_is_written_later(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with opened_writer(path, busy_limit=0.3) as writer:
        with lock_held(path), pytest.raises(StoreBusy):
            await writer.do(note("refused"))
        await writer.do(note("after"))

    assert notes(path) == {"after"}


async def test_health_heals_although_nobody_writes(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened_writer(path, busy_limit=0.1, guard=0.05, idle=0.05) as writer:
        with lock_held(path), pytest.raises(StoreBusy):
            await writer.do(note("refused"))
        assert writer.health.busy_since is not None
        await eventually_async(lambda: writer.health.busy_since is None)


@requirement("case.db3")
async def test_eight_writers_of_two_hundred_rows_finish_soon_with_a_bounded_log(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    waits: list[float] = []
    sizes: list[int] = []

    async with open_store(path, clock=SystemClock()) as opened:

        async def write(writer: int) -> None:
            for number in range(200):
                started = time.monotonic()
                key = f"{writer}-{number}"
                await opened.store.accept(accept_text("x" * 2_000, dedupe=key))
                waits.append(time.monotonic() - started)
                sizes.append(size(path, "-wal"))

        async with asyncio.TaskGroup() as tasks:
            for writer in range(8):
                tasks.create_task(write(writer), name=f"writer:{writer}")
        count = len(await stored(opened))

    assert count == 1_600
    assert sorted(waits)[int(len(waits) * 0.99)] < 2.0
    assert max(sizes) < 8 * PAGES * FRAME_BYTES


@requirement("case.db4")
async def test_fifty_inserts_at_once_never_meet_a_lock(tmp_path: Path) -> None:
    busy: list[object] = []
    async with open_store(tmp_path / "state.db", clock=SystemClock()) as opened:

        async def insert(number: int) -> Accepted:
            accepted = await opened.store.accept(accept_text(f"{number}", dedupe=f"{number}"))
            busy.append(opened.health().busy_since)
            assert isinstance(accepted, Accepted)
            return accepted

        results = await asyncio.gather(*(insert(number) for number in range(50)))
        writers = [thread for thread in threading.enumerate() if thread.name == "store-writer"]

    assert len({item.inbound for item in results}) == 50
    assert set(busy) == {None}
    assert len(writers) == 1


async def test_the_log_is_folded_into_the_file_when_nothing_happens(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with opened_writer(path, idle=0.05) as writer:
        await writer.do(note("one"))
        await eventually_async(lambda: size(path, "-wal") == 0)
        await writer.do(note("two"))
        assert notes(path) == {"one", "two"}


@requirement("design.transactions.never_span_network")
async def test_nothing_is_held_open_between_two_operations(tmp_path: Path) -> None:
    """While a model or a tool is called, anybody else can write at once."""
    path = tmp_path / "state.db"
    async with open_store(path, clock=SystemClock()) as opened:
        await opened.store.accept(accept_text("go", dedupe="1"))
        claim = await opened.store.claim_turn(worker="w")
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("PRAGMA wal_autocheckpoint = 0")
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")

    assert claim is not None


@requirement("design.transactions.never_span_network")
def test_a_store_is_asked_with_one_value_and_has_nothing_to_begin_or_commit() -> None:
    operations = {
        name: inspect.signature(method)
        for name, method in inspect.getmembers(Store, inspect.isfunction)
        if not name.startswith("_")
    }

    assert {"accept", "record_steps", "commit_turn", "decide", "enqueue"} <= set(operations)
    assert not {"begin", "commit", "rollback", "session", "transaction"} & set(operations)
    for name, signature in operations.items():
        positional = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY and parameter.name != "self"
        ]
        assert len(positional) <= 1, name


async def test_a_hint_follows_each_commit_and_says_whether_there_is_an_event(
    tmp_path: Path,
) -> None:
    hints: list[bool] = []

    def event(work: Work) -> None:
        work.run("INSERT INTO event (kind, at) VALUES ('start', 0)")
        work.wrote_event = True

    async with opened_writer(tmp_path / "state.db", on_commit=hints.append) as writer:
        await writer.do(note("quiet"))
        await writer.do(event)
        await writer.do(note("quiet again"))

    assert hints == [False, True, False]
