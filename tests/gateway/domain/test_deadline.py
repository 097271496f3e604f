"""A deadline counts the event loop's time, so these tests move the loop's clock and never wait."""

import asyncio

import pytest

from gateway.domain.deadline import Deadline

pytestmark = pytest.mark.anyio

FAR = 1_000.0


class Time:
    """The running loop's clock, moved by hand on top of the real one."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._real = loop.time
        self._ahead = 0.0
        # The loop asks its own `time` when a timer is due, so this moves every timer of it.
        loop.time = lambda: self._real() + self._ahead

    async def pass_by(self, seconds: float) -> None:
        """Let time pass and everything that became due run."""
        self._ahead += seconds
        for _ in range(3):
            await asyncio.sleep(0)


async def test_work_that_takes_too_long_is_ended() -> None:
    time = Time()

    with pytest.raises(TimeoutError):
        async with Deadline(FAR):
            await time.pass_by(FAR + 1)


async def test_work_in_time_is_left_alone() -> None:
    time = Time()

    async with Deadline(FAR):
        await time.pass_by(FAR / 2)


async def test_a_person_may_take_as_long_as_they_like() -> None:
    time = Time()

    async with Deadline(FAR) as deadline:
        with deadline.paused():
            await time.pass_by(FAR * 10)
        await time.pass_by(FAR / 2)


async def test_after_a_pause_only_the_rest_is_left() -> None:
    time = Time()

    async def work() -> None:
        async with Deadline(FAR) as deadline:
            await time.pass_by(FAR * 0.75)
            with deadline.paused():
                await time.pass_by(FAR)
            await time.pass_by(FAR * 0.5)

    with pytest.raises(TimeoutError):
        await work()


async def test_time_stands_still_until_the_last_pause_ends() -> None:
    time = Time()
    reached: list[str] = []

    async def work() -> None:
        async with Deadline(FAR) as deadline:
            with deadline.paused():
                with deadline.paused():
                    await time.pass_by(FAR * 2)
                await time.pass_by(FAR * 2)
            reached.append("the end of both")
            await time.pass_by(FAR + 1)

    with pytest.raises(TimeoutError):
        await work()
    assert reached == ["the end of both"]


async def test_another_task_may_hold_the_time_still() -> None:
    time = Time()
    asked, answered = asyncio.Event(), asyncio.Event()

    async def ask(deadline: Deadline) -> None:
        with deadline.paused():
            asked.set()
            await answered.wait()

    async with Deadline(FAR) as deadline, asyncio.TaskGroup() as tasks:
        tasks.create_task(ask(deadline), name="ask")
        await asked.wait()
        await time.pass_by(FAR * 2)
        answered.set()


async def test_a_pause_that_began_before_the_work_holds_it_too() -> None:
    time = Time()
    deadline = Deadline(FAR)

    with deadline.paused():
        async with deadline:
            await time.pass_by(FAR * 2)


async def test_a_pause_may_end_after_the_work() -> None:
    deadline = Deadline(FAR)

    with deadline.paused():
        async with deadline:
            pass


async def test_a_cancellation_from_outside_is_no_timeout() -> None:
    started = asyncio.Event()

    async def work() -> None:
        async with Deadline(FAR):
            started.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work(), name="work")
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
