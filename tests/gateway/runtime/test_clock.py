"""The time of the process when somebody turns the system's clock."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import DeliveryDeferred
from gateway.runtime.clock import SLEW, SystemClock
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.runtime import RuntimeConfig
from tests.fakes.house import running
from tests.fakes.loopback import PLATFORM, Loopback
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 3, 29, 0, 59, tzinfo=UTC).timestamp()
"""A minute before the clocks of Europe go forward."""
DAY, HOUR = 86_400.0, 3_600.0
WRITE = tool("add_note")


@dataclass(slots=True)
class Machine:
    """A system's clock that a test turns."""

    wall: float = NOON
    elapsed: float = 1_000.0

    def clock(self) -> SystemClock:
        return SystemClock(wall=lambda: self.wall, elapsed=lambda: self.elapsed)

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.elapsed += seconds


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


@requirement("fault.f36")
@pytest.mark.parametrize("jump", [DAY, -HOUR, HOUR, -DAY])
def test_a_jump_makes_nothing_due_at_once_and_nothing_wait_for_long(jump: float) -> None:
    machine = Machine()
    clock = machine.clock()
    due = clock.now() + timedelta(seconds=300)
    machine.wall += jump

    assert clock.now() == at(NOON)
    machine.passes(300 / (1 + SLEW) - 1)
    assert clock.now() < due
    machine.passes(300 / (1 - SLEW) - 300 / (1 + SLEW) + 2)
    assert clock.now() >= due


@requirement("fault.f36")
def test_the_time_is_the_systems_again_after_a_while() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall -= HOUR
    for _ in range(11 * 60):
        machine.passes(60)
        clock.now()

    assert clock.now() == at(machine.wall)


def test_a_suspended_machine_wakes_up_to_the_right_time() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.passes(8 * HOUR)

    assert clock.now() == at(NOON + 8 * HOUR)


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(-1e6, 1e6)), max_size=20))
def test_time_never_goes_back(steps: list[tuple[float, float]]) -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    for passed, jump in steps:
        machine.passes(passed)
        machine.wall += jump
        now = clock.now()
        assert now >= before
        before = now


class Turned(SystemClock):
    """The real time, on a machine whose clock a test turns."""

    def __init__(self) -> None:
        self.turned = 0.0
        super().__init__(wall=self._turned_time)

    def _turned_time(self) -> float:
        return datetime.now(UTC).timestamp() + self.turned


@requirement("fault.f36")
@pytest.mark.parametrize("jump", [DAY, -HOUR])
async def test_a_question_stays_open_and_a_reply_goes_out_while_the_clock_is_turned(
    tmp_path: Path, jump: float
) -> None:
    clock = Turned()
    tools = FakeTools()
    tools.add(WRITE, gated=True)
    model = ScriptedModel([calls((WRITE.alias, {"text": "milk"})), says("Noted."), says("Hello.")])
    config = RuntimeConfig(approvals=ApprovalsConfig(timeout=60))
    async with (
        asyncio.timeout(20),
        running(tmp_path, model, tools=tools, clock=clock, config=config) as house,
    ):
        await house.say("note milk")
        await house.adapter.until(lambda: len(house.adapter.cards()) == 1)
        clock.turned = jump
        await house.press("Allow once")
        await house.adapter.until(lambda: "Noted." in house.adapter.texts())
        await house.say("hello")
        await house.adapter.until(lambda: "Hello." in house.adapter.texts())

    assert [name for name, _ in tools.ran] == [WRITE.name]


@requirement("fault.f36")
async def test_a_chat_that_was_parked_goes_on_in_its_time_though_the_clock_went_back(
    tmp_path: Path,
) -> None:
    clock = Turned()
    refusals = [DeliveryDeferred(PLATFORM, 1)]

    def refuse_once(_: object) -> None:
        if refusals:
            clock.turned = -HOUR
            raise refusals.pop()

    model = ScriptedModel([says("One.")])
    chats = Loopback(on_send=refuse_once)
    async with asyncio.timeout(10), running(tmp_path, model, adapter=chats, clock=clock) as house:
        await house.say("hello")
        await house.adapter.until(lambda: "One." in house.adapter.texts())
