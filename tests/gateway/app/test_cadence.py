"""The jobs of a process: their cadence, a wall clock that is set, a loop that stood, and the end."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from gateway.app.cadence import Cadence, Job
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


class SetClock(ManualClock):
    """One whose wall clock somebody sets."""

    def set_by(self, hours: float) -> None:
        self._now += timedelta(hours=hours)


class Counted:
    """A job that counts its runs; it may hold, or fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.runs = 0
        self.ended = 0
        self.go = asyncio.Event()
        self.go.set()
        self._fails = fails

    async def run(self) -> None:
        self.runs += 1
        try:
            await self.go.wait()
            if self._fails:
                raise RuntimeError("boom")
        finally:
            self.ended += 1


@asynccontextmanager
async def running(job: Counted, clock: ManualClock) -> AsyncGenerator[Cadence]:
    cadence = Cadence([Job(name="job", seconds=60, run=job.run)], clock)
    task = asyncio.create_task(cadence.run())
    await eventually_async(lambda: cadence.started)
    assert job.runs == 0
    clock.advance(60)
    await looked(cadence)
    assert job.runs == 1
    try:
        yield cadence
    finally:
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()


async def looked(cadence: Cadence) -> None:
    """Let what is due start and run."""
    cadence.look()
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_job_runs_at_its_interval() -> None:
    job, clock = Counted(), ManualClock()
    async with running(job, clock) as cadence:
        clock.advance(59)
        await looked(cadence)
        assert job.runs == 1
        clock.advance(1)
        await looked(cadence)
        assert job.runs == 2


@requirement("fault.f36")
@pytest.mark.parametrize("hours", [24, -1, -24 * 365])
async def test_a_wall_clock_that_is_set_starts_nothing_and_stops_nothing(hours: float) -> None:
    job, clock = Counted(), SetClock()
    async with running(job, clock) as cadence:
        clock.set_by(hours)
        await looked(cadence)
        assert job.runs == 1
        for runs in (2, 3):
            clock.advance(60)
            await looked(cadence)
            assert job.runs == runs


@requirement("fault.f36")
async def test_what_was_missed_while_the_loop_stood_is_done_once() -> None:
    job, clock = Counted(), ManualClock()
    async with running(job, clock) as cadence:
        clock.advance(10 * 60 + 30)
        await looked(cadence)
        assert job.runs == 2
        clock.advance(30)
        await looked(cadence)
        assert job.runs == 3


async def test_a_run_that_lasts_is_not_joined_by_another() -> None:
    job, clock = Counted(), ManualClock()
    async with running(job, clock) as cadence:
        job.go.clear()
        for _ in range(3):
            clock.advance(60)
            await looked(cadence)
        assert job.runs == 2
        job.go.set()
        await eventually_async(lambda: job.ended == 2)
        clock.advance(60)
        await looked(cadence)
        assert job.runs == 3


async def test_a_run_that_fails_is_logged_and_the_next_one_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    job, clock = Counted(fails=True), ManualClock()
    async with running(job, clock) as cadence:
        clock.advance(60)
        await looked(cadence)

    assert job.runs == 2
    assert [record.message for record in caplog.records] == ["job failed", "job failed"]


async def test_the_end_cancels_a_run_and_waits_for_it() -> None:
    job, clock = Counted(), ManualClock()
    job.go.clear()
    async with running(job, clock):
        assert job.ended == 0

    assert (job.runs, job.ended) == (1, 1)


class RealClock(ManualClock):
    """One that moves by itself; it may fail once, inside whatever asks for the time next."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = False

    def monotonic(self) -> float:
        if self.fails:
            self.fails = False
            raise RuntimeError("no time")
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def moving(*jobs: Job, clock: RealClock, stands: float = 60.0) -> AsyncGenerator[Cadence]:
    cadence = Cadence(jobs, clock, stands=stands)
    task = asyncio.create_task(cadence.run())
    try:
        await eventually_async(lambda: cadence.started)
        yield cadence
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_on_a_clock_that_moves_nobody_has_to_look() -> None:
    job = Counted()
    async with moving(Job(name="job", seconds=0.02, run=job.run), clock=RealClock()):
        await eventually_async(lambda: job.runs >= 3)


@requirement("case.sc5")
async def test_a_job_that_blocks_is_given_up_and_holds_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    blocks, fails, works = Counted(), Counted(fails=True), Counted()
    blocks.go.clear()
    jobs = (
        Job(name="blocks", seconds=0.02, run=blocks.run, at_most=0.2),
        Job(name="fails", seconds=0.02, run=fails.run),
        Job(name="works", seconds=0.02, run=works.run),
    )
    async with moving(*jobs, clock=RealClock()):
        await eventually_async(lambda: blocks.runs == 1)
        before = works.runs
        await eventually_async(lambda: works.runs > before + 2)
        await eventually_async(lambda: blocks.runs == 2)
        assert blocks.ended == 1
        assert fails.runs > 1

    assert "blocks did not end within 0.2 s: given up" in caplog.messages


def _unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    del loop, context


@requirement("case.sc5")
async def test_a_scheduler_that_has_died_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    job, clock = Counted(), RealClock()
    async with moving(Job(name="job", seconds=0.02, run=job.run), clock=clock, stands=0.5) as all_:
        await eventually_async(lambda: job.runs >= 2)
        asyncio.get_running_loop().set_exception_handler(_unheard)
        clock.fails = True
        all_.look()
        await eventually_async(lambda: not clock.fails)
        died_at = job.runs
        await eventually_async(lambda: job.runs > died_at + 2)

    assert "the scheduler started nothing for 0.5 s: it is replaced" in caplog.messages
