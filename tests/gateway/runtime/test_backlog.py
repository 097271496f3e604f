from pathlib import Path

import pytest

from gateway.runtime.backlog import HOLD_SECONDS, Backlog
from gateway.runtime.wakeups import Wakeups
from tests.fakes.clock import HastyClock
from tests.fakes.house import running
from tests.fakes.loopback import PLATFORM, chat
from tests.fakes.model import ScriptedModel
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

TURNS = "SELECT count(*) FROM turn"


@requirement("fault.f25")
async def test_what_came_in_many_batches_while_nobody_listened_is_one_turn(tmp_path: Path) -> None:
    model = ScriptedModel()

    async with running(tmp_path, model) as house:
        house.runtime.intake.backlog(platform=PLATFORM, account="", waits=True)
        for n in range(250):
            await house.say(f"m{n}")
        assert house.rows(TURNS) == [(0,)]
        house.runtime.intake.backlog(platform=PLATFORM, account="", waits=False)
        await house.replies(1)
        assert house.rows(TURNS) == [(1,)]
        assert house.rows("SELECT count(*) FROM inbound WHERE state <> 'done'") == [(0,)]

    assert [said.text for said in model.requests[0].history] == [f"m{n}" for n in range(250)]


async def test_another_account_is_answered_while_one_catches_up(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel()) as house:
        house.runtime.intake.backlog(platform="elsewhere", account="", waits=True)
        await house.say("hi")
        await house.replies(1)


async def test_a_flood_that_never_ends_is_answered_all_the_same(tmp_path: Path) -> None:
    clock = HastyClock()

    async with running(tmp_path, ScriptedModel(), clock=clock) as house:
        house.runtime.intake.backlog(platform=PLATFORM, account="", waits=True)
        await house.say("hi", place=chat(1))
        await eventually_async(lambda: len(house.adapter.texts(chat(1))) == 1)
        house.runtime.intake.backlog(platform=PLATFORM, account="", waits=True)
        await house.say("still here?", place=chat(2))
        await house.replies(1, place=chat(2))


def test_a_hold_ends_by_itself_and_begins_anew_only_after_the_account_caught_up() -> None:
    clock = ManualClock()
    backlog = Backlog(Wakeups(), clock)
    account = (PLATFORM, "")

    backlog.waits(account)
    clock.advance(HOLD_SECONDS / 2)
    backlog.waits(account)
    assert backlog.held == (account,)
    assert backlog.seconds_left == HOLD_SECONDS / 2

    clock.advance(HOLD_SECONDS / 2)
    assert (backlog.held, backlog.seconds_left) == ((), None)
    backlog.waits(account)
    assert backlog.held == ()

    backlog.arrived(account)
    backlog.waits(account)
    assert backlog.held == (account,)
