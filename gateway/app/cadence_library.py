"""The scheduler of `cadence`, made of APScheduler. Only `cadence` imports it, beside the event loop."""

# The library has no stubs.
# pyright: reportMissingTypeStubs=false

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, tzinfo

from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger


def scheduler(zone: tzinfo) -> AsyncIOScheduler:
    """Return one that keeps its jobs in memory and takes its time from `zone`."""
    return AsyncIOScheduler(
        timezone=zone,
        jobstores={"default": MemoryJobStore()},
        executors={"default": AsyncIOExecutor()},
        job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
    )


def add(
    to: AsyncIOScheduler,
    name: str,
    run: Callable[[], Awaitable[None]],
    seconds: float,
) -> None:
    """Add a job that runs every `seconds` from now."""
    # Its functions have no types.
    to.add_job(run, _Every(seconds), id=name, name=name)  # pyright: ignore[reportUnknownMemberType]


class _Every(BaseTrigger):
    """As the library's interval, whose times are made by the wall clock's rules."""

    def __init__(self, seconds: float) -> None:
        self._pause = timedelta(seconds=seconds)

    # The library's own base seems to return nothing, since it only raises.
    def get_next_fire_time(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime | None:
        """Return the time after the previous one, or after now."""
        return (previous_fire_time or now) + self._pause
