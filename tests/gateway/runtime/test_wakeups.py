import asyncio
from datetime import timedelta

import pytest

from gateway.domain.ids import QuestionId
from gateway.runtime.wakeups import Wakeups
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio

QUESTION = QuestionId("q1")


async def test_a_ring_before_the_wait_is_not_lost() -> None:
    wakeups = Wakeups()
    wakeups.turns()
    wakeups.controls()
    wakeups.settled(QUESTION)

    async with asyncio.timeout(1):
        await wakeups.wait_turns(within=None, clock=ManualClock())
        await wakeups.wait_controls()
        await wakeups.wait_settled(QUESTION)


async def test_every_delivery_loop_hears_every_ring() -> None:
    wakeups = Wakeups()

    with wakeups.delivery_bell() as first, wakeups.delivery_bell() as second:
        wakeups.deliveries()
        async with asyncio.timeout(1):
            await first.wait()
            await second.wait()


async def test_all_waiters_of_a_question_wake_and_no_other() -> None:
    wakeups = Wakeups()
    async with asyncio.timeout(1), asyncio.TaskGroup() as tasks:
        mine = [tasks.create_task(wakeups.wait_settled(QUESTION)) for _ in range(2)]
        other = tasks.create_task(wakeups.wait_settled(QuestionId("q2")))
        await asyncio.sleep(0)
        wakeups.settled(QUESTION)
        await asyncio.gather(*mine)
        assert not other.done()
        other.cancel()


async def test_a_bell_rings_by_itself_at_the_time_it_was_given() -> None:
    clock = ManualClock()
    with Wakeups().delivery_bell() as bell:
        async with asyncio.timeout(1), asyncio.TaskGroup() as tasks:
            at = clock.now() + timedelta(seconds=5)
            waiting = tasks.create_task(bell.wait_until(at, clock=clock))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not waiting.done()
            clock.advance(5)


async def test_rings_that_nobody_waits_for_do_not_pile_up() -> None:
    wakeups = Wakeups()
    for n in range(3_000):
        wakeups.settled(QuestionId(f"q{n}"))
    async with asyncio.timeout(1), asyncio.TaskGroup() as tasks:
        forgotten = tasks.create_task(wakeups.wait_settled(QuestionId("q0")))
        await wakeups.wait_settled(QuestionId("q2999"))
        await asyncio.sleep(0)
        assert not forgotten.done()
        forgotten.cancel()
