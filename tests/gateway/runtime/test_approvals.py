"""Asking whether a call may run, over the real store: who decides, when, and what stays."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.delivery import DeliveryKind
from gateway.domain.errors import Conflict
from gateway.domain.ids import Actor
from gateway.domain.operations.questions import Refused, Settled
from gateway.domain.operations.turns import RecordSteps, SentStep
from gateway.domain.question import (
    Action,
    ApproverPolicy,
    Approvers,
    QuestionState,
    Surface,
)
from gateway.domain.tools import ToolCall
from gateway.ports import Approval
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.expiry import Expiry
from tests.fakes.loopback import PLATFORM
from tests.fakes.tools import tool
from tests.support.people import (
    ANNA,
    BEN,
    ROOT,
    STRANGER,
    People,
    buttons,
    dm,
    limit,
    people,
    short,
    token,
)
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

NOTE = tool("add_note")


async def ask(chat: People, call: ToolCall) -> Approval:
    async with limit() as deadline:
        return await chat.broker.approve(call, NOTE, deadline=deadline)


def asking(chat: People, call: ToolCall) -> "asyncio.Task[Approval]":
    return chat.tasks.create_task(ask(chat, call), name="ask")


async def test_a_press_on_allow_once_lets_the_call_run_with_the_arguments_of_the_row(
    tmp_path: Path,
) -> None:
    async with people(tmp_path / "state.db") as chat:
        claim = await chat.turn()
        call = await chat.call({"text": "hi", "api_token": "s3cret"}, claim=claim)
        waiting = asking(chat, call)
        card = await chat.card()
        assert "demo · add_note" in card.body
        assert '"text": "hi"' in card.body
        assert "s3cret" not in card.body
        assert "•••• (6 chars)" in card.body
        assert "Asked by Anna" in card.body
        assert "(in 5 min)" in card.body

        await chat.press(token(card, "Allow once"))

        approval = await waiting
        assert approval.allowed
        assert approval.reason == "allowed once by Anna"
        recorded = await chat.store.record_steps(
            RecordSteps(
                turn=claim.turn,
                fence=claim.fence,
                rounds=1,
                sent=(SentStep(n=1, question=approval.question),),
            )
        )
        assert recorded.arguments[1] == call.arguments
        assert "Allowed once by Anna · " in await chat.closed()


@requirement("approval.gate.never_runs_undecided")
async def test_deny_is_told_with_its_reason_to_model_and_chat(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = asking(chat, await chat.call())
        card = await chat.card()
        said = await chat.say("deny", f"{short(card)} not today")
        assert said.endswith("demo · add_note: Denied.")
        approval = await waiting
        assert (approval.allowed, approval.reason) == (False, "not run: denied by Anna: not today")
        assert approval.question is None
        edits = [item.body for item in chat.log if item.kind is DeliveryKind.EDIT]
        assert "Denied by Anna: not today" in edits[-1]


@requirement("approval.gate.never_runs_undecided")
async def test_nobody_answering_is_told_to_model_and_chat(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = asking(chat, await chat.call())
        await chat.card()
        chat.clock.advance(300)
        approval = await waiting
        assert (approval.allowed, approval.reason) == (False, "not run: no answer in 300 s")
        assert "Expired, not run: no answer in 300 s" in await chat.closed()


@requirement("approval.gate.never_runs_undecided")
async def test_where_nobody_can_be_asked_nothing_is_asked_and_nothing_runs(
    tmp_path: Path,
) -> None:
    async with people(tmp_path / "state.db", platforms=()) as chat:
        approval = await ask(chat, await chat.call())
        assert approval.allowed is False
        assert approval.reason.startswith(f"not run: nobody can be asked on {PLATFORM}: ")
        assert not await chat.readers.questions.pending()


@requirement("approval.gate.never_runs_undecided")
async def test_a_turn_that_is_stopped_closes_its_card(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        waiting = asking(chat, call)
        await chat.card()
        assert call.turn is not None
        await chat.broker.withdraw_turn(call.turn, "stopped by Anna")
        approval = await waiting
        assert approval.reason == "not run: no longer waiting: stopped by Anna"
        assert not approval.allowed
        assert "No longer waiting: stopped by Anna" in await chat.closed()


@requirement("approval.gate.never_runs_undecided")
async def test_an_approval_covers_one_call_and_no_other(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        claim = await chat.turn()
        waiting = asking(chat, await chat.call(claim=claim))
        await chat.press(token(await chat.card(), "Allow once"))
        approval = await waiting
        sent = RecordSteps(
            turn=claim.turn,
            fence=claim.fence,
            rounds=1,
            sent=(SentStep(n=1, question=approval.question),),
        )
        await chat.store.record_steps(sent)
        await chat.call({"text": "other"}, claim=claim, step=2)
        again = RecordSteps(
            turn=claim.turn,
            fence=claim.fence,
            rounds=1,
            sent=(SentStep(n=2, question=approval.question),),
        )
        with pytest.raises(Conflict):
            await chat.store.record_steps(again)


async def test_after_allow_once_the_next_call_of_the_tool_asks_again(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        claim = await chat.turn()
        first = asking(chat, await chat.call(claim=claim))
        await chat.press(token(await chat.card(), "Allow once"))
        assert (await first).allowed
        second = asking(chat, await chat.call(claim=claim, step=2))
        await chat.press(token(await chat.card(), "Deny"))
        assert not (await second).allowed


async def test_allow_for_this_session_asks_no_more_in_it_until_the_tool_changes(
    tmp_path: Path,
) -> None:
    async with people(tmp_path / "state.db") as chat:
        claim = await chat.turn()
        first = asking(chat, await chat.call(claim=claim))
        await chat.press(token(await chat.card(), "Allow for this session"))
        assert (await first).allowed
        again = await ask(chat, await chat.call({"text": "2"}, claim=claim, step=2))
        assert again.allowed
        assert again.question is None
        other = await chat.turn(place=dm(BEN), sender=BEN)
        elsewhere = asking(chat, await chat.call(claim=other))
        await chat.press(token(await chat.card(), "Deny"), by=BEN, place=dm(BEN))
        assert not (await elsewhere).allowed


async def test_only_an_admin_is_offered_and_may_press_always(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = asking(chat, await chat.call())
        assert buttons(await chat.card()) == ["Allow once", "Allow for this session", "Deny"]
        question = await chat.only_question()
        said = await chat.say("approve", f"{question.short} always")
        assert "Only an admin" in said
        assert (await chat.question(question.id)).state is QuestionState.PENDING
        await chat.say("deny", question.short)
        await waiting
        asked = asking(chat, await chat.call(claim=await chat.turn(sender=ROOT, place=dm(ROOT))))
        card = await chat.card()
        assert "Always allow" in buttons(card)
        await chat.press(token(card, "Always allow"), by=ROOT, place=dm(ROOT))
        assert (await asked).allowed
        (rule,) = await chat.readers.rules.live()
        assert (rule.scope, rule.tool) == ("always", "add_note")


async def test_fifty_presses_at_once_have_one_winner(tmp_path: Path) -> None:
    config = ApprovalsConfig(
        approvers=Approvers(
            policy=ApproverPolicy.LIST, ids=tuple(f"{PLATFORM}:{n}" for n in range(100, 150))
        )
    )
    async with people(tmp_path / "state.db", config=config) as chat:
        waiting = asking(chat, await chat.call())
        await chat.card()
        question = await chat.only_question()
        rulings = await asyncio.gather(
            *(
                chat.decisions.decide(
                    question,
                    actor=Actor(platform=PLATFORM, id=str(n)),
                    surface=Surface.BUTTON,
                    action=Action.ALLOW_ONCE if n % 2 else Action.DENY,
                )
                for n in range(100, 150)
            )
        )
        winners = [ruling for ruling in rulings if isinstance(ruling, Settled)]
        assert len(winners) == 1
        losers = [ruling for ruling in rulings if isinstance(ruling, Refused)]
        assert {loser.question and loser.question.decision for loser in losers} == {
            winners[0].decision
        }
        approval = await waiting
        assert approval.decision == winners[0].decision


async def test_a_bystander_is_refused_visibly_and_the_button_stays(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = asking(chat, await chat.call())
        card = await chat.card()
        for nobody in (BEN, STRANGER):
            await chat.press(token(card, "Allow once"), by=nobody)
            (notice,) = await chat.sent()
            assert notice.body == "Only Anna or an admin can decide this."
        await chat.press(token(card, "Allow once"))
        assert (await waiting).allowed


async def test_a_press_from_another_chat_changes_nothing(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = asking(chat, await chat.call())
        card = await chat.card()
        await chat.press(token(card, "Allow once"), place=dm(ANNA))
        assert (await chat.only_question()).state is QuestionState.PENDING
        await chat.press("forged" + token(card, "Allow once")[6:])
        assert (await chat.only_question()).state is QuestionState.PENDING
        await chat.press(token(card, "Deny"))
        assert not (await waiting).allowed


async def test_a_late_press_is_told_who_was_first(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db", toasts=True) as chat:
        waiting = asking(chat, await chat.call())
        card = await chat.card()
        await chat.press(token(card, "Allow once"), interaction="i1")
        await chat.press(token(card, "Deny"), by=ROOT, interaction="i2")
        await chat.press(token(card, "Allow once"), interaction="i3")
        assert (await waiting).allowed
        told = dict(chat.toasts.shown)
        assert told["i1"] == told["i3"] == "Allowed once."
        assert told["i2"].startswith("Already settled: Allowed once by Anna · ")


async def test_a_press_on_the_second_of_two_cards_decides_the_second(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        claim = await chat.turn()
        first = asking(chat, await chat.call(claim=claim))
        first_card = await chat.card()
        second = asking(chat, await chat.call(claim=claim, step=2))
        await chat.press(token(await chat.card(), "Deny"))
        assert not (await second).allowed
        assert not first.done()
        await chat.press(token(first_card, "Allow once"))
        assert (await first).allowed


async def test_a_pending_question_survives_a_restart_with_its_old_buttons(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        waiting = asking(chat, call)
        card = await chat.card()
        waiting.cancel()
        clock = chat.clock
    async with people(tmp_path / "state.db", clock=clock) as chat:
        waiting = asking(chat, call)
        await chat.press(token(card, "Allow once"))
        approval = await waiting
        assert approval.allowed
        assert not [item for item in chat.log if item.kind is DeliveryKind.CARD]
    async with people(tmp_path / "state.db", clock=clock) as chat:
        assert await ask(chat, call) == approval


async def test_a_call_that_changed_meanwhile_is_asked_anew(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        first = asking(chat, call)
        old = await chat.card()
        first.cancel()
        changed = ToolCall(
            id=call.id,
            alias=call.alias,
            arguments=type(call.arguments)('{"text":"other"}'),
            place=call.place,
            requester=call.requester,
            session=call.session,
            turn=call.turn,
            step=call.step,
        )
        second = asking(chat, changed)
        new = await chat.card()
        await chat.press(token(old, "Allow once"))
        assert not second.done()
        await chat.press(token(new, "Allow once"))
        assert (await second).allowed


async def test_the_callers_time_limit_stands_still_while_somebody_decides(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        async with limit() as deadline:
            waiting = chat.tasks.create_task(chat.broker.approve(call, NOTE, deadline=deadline))
            card = await chat.card()
            assert deadline.is_paused
            await chat.press(token(card, "Deny"))
            await waiting
            assert not deadline.is_paused


async def test_a_question_nobody_waits_for_is_ended_by_the_sweep(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = asking(chat, await chat.call())
        card = await chat.card()
        waiting.cancel()
        sweep = Expiry(chat.readers.questions, chat.decisions, chat.clock)
        assert 0 < await sweep.sweep() <= 30
        chat.clock.advance(301)
        await sweep.sweep()
        assert "no answer in 300 s" in await chat.closed()
        await chat.press(token(card, "Allow once"))
        (late,) = await chat.sent()
        assert late.body == "Too late: it was not run: no answer in 300 s."


@requirement("approval.decide.approvers")
async def test_two_people_must_agree_when_two_are_asked_for(tmp_path: Path) -> None:
    config = ApprovalsConfig(quorum=2)
    async with people(tmp_path / "state.db", config=config) as chat:
        waiting = asking(chat, await chat.call())
        card = await chat.card()
        await chat.press(token(card, "Allow once"))
        assert not waiting.done()
        await chat.press(token(card, "Allow once"), by=ROOT)
        assert (await waiting).allowed


async def test_approve_and_deny_take_the_short_id(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        claim = await chat.turn()
        waiting = asking(chat, await chat.call(claim=claim))
        card = await chat.card()
        listed = await chat.say("approvals")
        assert f"`{short(card)}` demo · add_note, asked by Anna, 300 s left" in listed
        assert "Only Anna" in await chat.say("approve", short(card), by=BEN)
        assert "Allowed for this session." in await chat.say("approve", f"{short(card)} session")
        assert (await waiting).allowed
        assert "Already settled: Allowed for this session by Anna" in await chat.say(
            "deny", short(card), by=ROOT
        )
        assert "Nothing waits" in await chat.say("approvals")
        assert "There is no question zzzz" in await chat.say("approve", "zzzz")
        assert "at least 4" in await chat.say("approve", "z")
        assert "Usage" in await chat.say("approve", f"{short(card)} forever")
