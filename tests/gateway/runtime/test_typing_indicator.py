import asyncio
from pathlib import Path

import pytest

from gateway.domain.ids import Place
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.runtime import RuntimeConfig
from gateway.runtime.typing_indicator import EVERY_SECONDS, FIRST_SECONDS, TypingIndicator
from tests.fakes.clock import HastyClock
from tests.fakes.house import running
from tests.fakes.loopback import PLATFORM, chat
from tests.fakes.model import ScriptedModel, SlowModel, calls_tool, says
from tests.fakes.tools import FakeTools, tool
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


class Signs:
    """Implements `Typing`: writes down where it was shown."""

    def __init__(self) -> None:
        self.shown: list[Place] = []

    async def show_typing(self, place: Place) -> None:
        self.shown.append(place)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@requirement("typing.while_running")
async def test_it_is_shown_again_and_again_pauses_for_a_person_and_ends_with_the_work() -> None:
    clock, signs, waits = ManualClock(), Signs(), asyncio.Event()
    indicator = TypingIndicator({(PLATFORM, ""): signs}, clock)

    async with indicator.shown(chat(), paused=waits.is_set):
        await settle()
        assert signs.shown == []
        clock.advance(FIRST_SECONDS)
        await settle()
        assert signs.shown == [chat()]
        clock.advance(EVERY_SECONDS)
        await settle()
        assert len(signs.shown) == 2
        waits.set()
        clock.advance(EVERY_SECONDS)
        await settle()
        assert len(signs.shown) == 2
        waits.clear()
        clock.advance(EVERY_SECONDS)
        await settle()
        assert len(signs.shown) == 3
    clock.advance(EVERY_SECONDS * 3)
    await settle()
    assert len(signs.shown) == 3


@requirement("typing.while_running")
async def test_a_turn_shows_it_where_its_conversation_is(tmp_path: Path) -> None:
    signs, model = Signs(), SlowModel()

    async with running(tmp_path, model, typing=signs) as house:
        await house.say("hi", place=chat(2))
        await eventually_async(lambda: signs.shown == [chat(2)])
        model.gate.release()
        await house.replies(1, place=chat(2))


@requirement("typing.while_running")
async def test_nothing_is_shown_while_a_card_is_open(tmp_path: Path) -> None:
    signs, clock, tools = Signs(), HastyClock(), FakeTools()
    tools.add(tool("write"), gated=True)
    model = ScriptedModel([calls_tool("mcp__demo__write"), says("done")])
    config = RuntimeConfig(approvals=ApprovalsConfig(timeout=10**6))

    async with running(
        tmp_path, model, tools=tools, typing=signs, clock=clock, config=config
    ) as house:
        await house.say("write it")
        await house.adapter.until(lambda: len(house.adapter.cards()) == 1)
        before, looks = len(signs.shown), clock.slept.count(EVERY_SECONDS)
        await eventually_async(lambda: clock.slept.count(EVERY_SECONDS) > looks + 5)
        assert len(signs.shown) == before
        await house.press("Allow once")
        await house.adapter.until(lambda: "done" in house.adapter.texts())
