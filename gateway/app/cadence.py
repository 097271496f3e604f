"""What a process does again and again beside its work: one scheduler, in memory.

For cadence alone; what must survive the process is a row of the store. Its time is the clock's
monotonic one, so that a wall clock that is set neither holds a job up nor makes it run in a burst.
"""

import asyncio
import importlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final

from gateway.ports import Clock
from gateway.ports.loading import load

if TYPE_CHECKING:
    # The library has no stubs.
    from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]

    from mcp_host.host import McpHost

logger = logging.getLogger(__name__)

PROBE_SECONDS: Final = 5.0
RELIST_SECONDS: Final = 600.0
STANDS_SECONDS: Final = 5.0

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Something done every `seconds`, never twice at the same time.

    What was due while the event loop stood or an earlier run went on is done once. A run that has not
    ended after `at_most` seconds is given up, so that the next one comes.
    """

    name: str
    seconds: float
    run: Callable[[], Awaitable[None]]
    at_most: float = 60.0


def server_jobs(host: "McpHost") -> tuple[Job, ...]:
    """Return what the MCP servers need from time to time.

    Whether one still answers, idles or is too old is minded beside its session, and ends with it.
    """
    return (
        Job(name="mcp:probe", seconds=PROBE_SECONDS, run=host.probe),
        Job(name="mcp:relist", seconds=RELIST_SECONDS, run=host.relist),
    )


@asynccontextmanager
async def recurring(jobs: Sequence[Job], clock: Clock) -> AsyncGenerator[None]:
    """Run the jobs while the block runs."""
    task = asyncio.create_task(Cadence(jobs, clock).run(), name="cadence")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


class Cadence:
    """Runs the jobs of one process; `run` is its one task.

    A scheduler that starts nothing for `stands` seconds, twice, is replaced.
    """

    def __init__(
        self, jobs: Sequence[Job], clock: Clock, *, stands: float = STANDS_SECONDS
    ) -> None:
        self._stands = stands
        self._jobs = (*jobs, Job(name="pulse", seconds=stands / 5, run=self._beat))
        self._clock = clock
        self._running: set[asyncio.Task[Any]] = set()
        self._scheduler: AsyncIOScheduler | None = None
        self._pulse = clock.monotonic()

    async def run(self) -> None:
        """Run the jobs until cancelled; none of them runs afterwards."""
        library = await load(importlib.import_module, "gateway.app.cadence_library")
        while True:
            scheduler: AsyncIOScheduler = library.scheduler(_Steady(self._clock))
            for job in self._jobs:
                library.add(scheduler, job.name, self._once(job), job.seconds)
            scheduler.start()
            self._scheduler = scheduler
            try:
                await self._until_it_stands()
            finally:
                self._scheduler = None
                await self._end(scheduler)
            logger.error("the scheduler started nothing for %g s: it is replaced", self._stands)

    @property
    def started(self) -> bool:
        """True while the jobs are run."""
        return self._scheduler is not None

    def look(self) -> None:
        """Start what is due by now, soon; for a clock that does not move by itself."""
        if self._scheduler is not None:
            self._scheduler.wakeup()

    async def _beat(self) -> None:
        self._pulse = self._clock.monotonic()

    async def _until_it_stands(self) -> None:
        """Return when what is due is not started any more although the event loop turns."""
        await self._beat()
        late = 0
        while late < 2:
            asleep = self._clock.monotonic()
            await self._clock.sleep(self._stands)
            now = self._clock.monotonic()
            # Where the loop itself stood, nothing could be started; it is looked at twice, since that
            # may have been short.
            turned = now - asleep < 2 * self._stands
            late = late + 1 if turned and now - self._pulse >= self._stands else 0

    async def _end(self, scheduler: "AsyncIOScheduler") -> None:
        if scheduler.running:
            scheduler.shutdown(wait=False)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _once(self, job: Job) -> Callable[[], Awaitable[None]]:
        async def once() -> None:
            task = asyncio.current_task()
            if task is None:
                return
            self._running.add(task)
            try:
                async with asyncio.timeout(job.at_most):
                    await job.run()
            except TimeoutError:
                logger.error("%s did not end within %g s: given up", job.name, job.at_most)
            except Exception:
                # The next run must come all the same.
                logger.exception("%s failed", job.name)
            finally:
                self._running.discard(task)

        return once


class _Steady(tzinfo):
    """A time zone whose "now" is the monotonic time: asking it for the time is all one can do."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def fromutc(self, dt: datetime) -> datetime:
        """Return the time now, whatever the wall clock says."""
        del dt
        return (_EPOCH + timedelta(seconds=self._clock.monotonic())).replace(tzinfo=self)

    def utcoffset(self, dt: datetime | None) -> timedelta:
        """Return nothing: it is as good as UTC."""
        del dt
        return timedelta(0)

    def dst(self, dt: datetime | None) -> timedelta:
        """Return nothing."""
        del dt
        return timedelta(0)

    def tzname(self, dt: datetime | None) -> str:
        """Return its name."""
        del dt
        return "steady"
