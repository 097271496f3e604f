"""What other programs do to the file while the gateway uses it."""

import asyncio
import dataclasses
import time
from pathlib import Path

import pytest

from gateway.domain.errors import StoreBroken, StoreBusy
from gateway.domain.ids import SessionId
from gateway.domain.operations.inbound import Accepted
from gateway.runtime.clock import SystemClock
from store import OpenStore, open_store
from store.writer import DEFAULT_PACE
from tests.store.faults.foreign import lock_held, visit
from tests.store.samples import accept_text
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

FAULT_SECONDS = 30.0
HOLD_SECONDS = 2.0
"""Stands for the 30 s: the writer repeats at least once a second, so more of them add nothing."""

NOTICED_WITHIN = 5.0


async def texts(opened: OpenStore) -> list[str]:
    messages = await opened.readers.conversations.messages(SessionId(1), limit=100)
    return [message.text for message in messages]


@requirement("fault.f13")
async def test_a_foreign_lock_shows_as_degraded_loses_nothing_and_heals_by_itself(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with open_store(path, clock=SystemClock()) as opened:
        await opened.store.accept(accept_text("before", dedupe="before"))
        with lock_held(path):
            held_until = time.monotonic() + HOLD_SECONDS
            waiting = [
                asyncio.create_task(
                    opened.store.accept(accept_text(f"{n}", dedupe=f"{n}")), name=f"accept:{n}"
                )
                for n in range(20)
            ]
            await eventually_async(lambda: opened.health().busy_since is not None)
            read = await texts(opened)
            await eventually_async(lambda: time.monotonic() > held_until)
            acknowledged = [task.get_name() for task in waiting if task.done()]
        accepted = await asyncio.gather(*waiting)
        healthy = opened.health()
        stored = await texts(opened)

    assert read == ["before"], "reading goes on"
    assert acknowledged == [], "a platform is not told that its message is safe"
    assert all(isinstance(result, Accepted) for result in accepted)
    assert stored == ["before", *(str(n) for n in range(20))]
    assert healthy.busy_since is None


@requirement("fault.f13")
def test_a_lock_of_half_a_minute_is_within_what_the_writer_waits_out() -> None:
    assert DEFAULT_PACE.busy_limit > FAULT_SECONDS


async def test_a_lock_that_outlasts_the_writer_is_told_and_the_repeat_is_stored_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    impatient = dataclasses.replace(DEFAULT_PACE, busy_limit=0.1)
    message = accept_text("again", dedupe="again")
    async with open_store(path, clock=SystemClock(), pace=impatient) as opened:
        with lock_held(path), pytest.raises(StoreBusy):
            await opened.store.accept(message)
        accepted = await opened.store.accept(message)
        stored = await texts(opened)

    assert isinstance(accepted, Accepted)
    assert stored == ["again"]


async def test_an_idle_writer_finds_out_by_itself_that_the_lock_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    impatient = dataclasses.replace(DEFAULT_PACE, busy_limit=0.1, idle=0.1)
    async with open_store(path, clock=SystemClock(), pace=impatient) as opened:
        with lock_held(path), pytest.raises(StoreBusy):
            await opened.store.accept(accept_text("x", dedupe="x"))

        await eventually_async(lambda: opened.health().busy_since is None)


@requirement("fault.f16")
async def test_a_stranded_log_is_noticed_within_five_seconds_and_nothing_more_is_acknowledged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    async with open_store(path, clock=SystemClock()) as opened:
        await opened.store.accept(accept_text("one", dedupe="1"))
        # A plain open and close in this process drops all of SQLite's locks on the file, so the
        # next one to close it elsewhere takes itself for the last and deletes the log.
        path.open("rb").close()
        await asyncio.to_thread(visit, path)
        assert not (tmp_path / "state.db-wal").exists()

        await eventually_async(
            lambda: opened.health().broken != "", seconds=NOTICED_WITHIN, what="a broken store"
        )
        with pytest.raises((StoreBroken, StoreBusy)):
            await opened.store.accept(accept_text("two", dedupe="2"))

    assert "deleted while in use" in opened.health().broken


async def test_a_visit_by_another_process_alone_strands_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with open_store(path, clock=SystemClock()) as opened:
        await opened.store.accept(accept_text("one", dedupe="1"))
        await asyncio.to_thread(visit, path)
        await opened.store.accept(accept_text("two", dedupe="2"))

        assert opened.health().broken == ""
    async with open_store(path, clock=SystemClock()) as opened:
        assert await texts(opened) == ["one", "two"]
