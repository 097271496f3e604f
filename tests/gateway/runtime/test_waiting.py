"""While a person decides, the time limit of the turn stands still: it is one deadline that counts."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.model import ModelReply, ModelRequest
from gateway.runtime.config import ApprovalsConfig, GatewayConfig
from gateway.runtime.runtime import RuntimeConfig
from tests.fakes.house import running
from tests.fakes.loopback import BEN, chat
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.tools import FakeTools, tool
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

NOTE = tool("add_note")
SHORT = GatewayConfig(turn_timeout=0.3)


async def for_ever(request: ModelRequest) -> ModelReply:
    await asyncio.Event().wait()
    return says(f"never {request.system}")


@requirement("approval.deadline")
async def test_a_turn_that_waits_for_a_person_outlives_its_time_limit(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(NOTE, gated=True)
    model = ScriptedModel([calls((NOTE.alias, {"text": "milk"})), for_ever, says("Noted.")])
    async with running(tmp_path, model, tools=tools, config=RuntimeConfig(gateway=SHORT)) as house:
        await house.say("note milk")
        await house.adapter.until(lambda: len(house.adapter.cards()) == 1)
        # Begun later and ended by the same limit: the first turn is past it by now.
        await house.say("think", place=chat(2), sender=BEN)
        (ended,) = await house.replies(1, place=chat(2))
        assert "time limit" in ended

        await house.press("Allow once")
        assert await house.replies(1, place=chat(1)) == ["Noted."]
        assert tools.ran == [(NOTE.name, '{"text":"milk"}')]


@requirement("approval.deadline")
async def test_the_deadline_of_the_card_is_that_of_its_row_and_of_who_waits(
    tmp_path: Path,
) -> None:
    clock, tools = ManualClock(), FakeTools()
    tools.add(NOTE, gated=True)
    model = ScriptedModel([calls((NOTE.alias, {"text": "milk"})), says("It was not run.")])
    config = RuntimeConfig(approvals=ApprovalsConfig(timeout=45))
    async with running(tmp_path, model, tools=tools, config=config, clock=clock) as house:
        await house.say("note milk")
        await house.adapter.until(lambda: len(house.adapter.cards()) == 1)
        (card,) = house.adapter.cards()
        ((lasts,),) = house.rows("SELECT expires_at - created_at FROM question")
        assert (lasts, "(in 45 s)" in card.body) == (45_000, True)
        clock.advance(44)
        assert house.rows("SELECT state FROM question") == [("pending",)]

        clock.advance(1)
        await house.replies(1)

        assert house.rows("SELECT state, decision FROM question") == [("expired", "timeout")]
        assert "not run: no answer in 45 s" in model.requests[-1].history[-1].text
        closing = next(item.body for item in house.adapter.sent if item.kind == "edit")
        assert "Expired, not run: no answer in 45 s" in closing
        assert tools.ran == []
