"""Forms and choices put to people over the real store, with their own buttons and typed answers."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.form import FieldKind, Form, FormAction, FormAnswer, FormField, Option
from gateway.domain.question import QuestionState
from gateway.domain.tools import ToolCall
from gateway.ports import FormRequest
from tests.support.people import BEN, People, buttons, dm, limit, people, short, token
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

WHEN = Form(
    message="When do you want it?",
    fields=(
        FormField(name="day", kind=FieldKind.DATE, label="Day"),
        FormField(
            name="size",
            kind=FieldKind.CHOICE,
            label="Size",
            options=(Option(value="s", label="Small"), Option(value="l", label="Large")),
        ),
        FormField(name="note", kind=FieldKind.TEXT, label="Note", required=False),
    ),
)
CONFIRM = Form(message="Really delete it?")


async def elicit(
    chat: People, call: ToolCall, form: Form, *, problem: str = "", seconds: float | None = None
) -> FormAnswer:
    request = FormRequest(
        server="demo", server_sha="s", tool="order", form=form, problem=problem, timeout=seconds
    )
    async with limit() as deadline:
        return await chat.broker.elicit(call, request, deadline=deadline)


def eliciting(
    chat: People, call: ToolCall, form: Form, *, seconds: float | None = None
) -> "asyncio.Task[FormAnswer]":
    return chat.tasks.create_task(elicit(chat, call, form, seconds=seconds), name="elicit")


async def test_a_form_is_answered_field_by_field_reviewed_edited_and_submitted(
    tmp_path: Path,
) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = eliciting(chat, await chat.call(), WHEN)
        card = await chat.card()
        assert "demo · order" in card.body
        assert "When do you want it?" in card.body
        await chat.type(card, "tomorrow")
        card = await chat.card()
        assert "YYYY-MM-DD" in card.body
        await chat.type(card, "2026-03-31")
        await chat.press(token(await chat.card(), "Large"))
        await chat.press(token(await chat.card(), "Skip"))
        review = await chat.card()
        assert "Day: 2026-03-31\nSize: Large\nNote: (left out)" in review.body
        assert buttons(review) == ["Submit", "Edit", "Decline", "Cancel"]
        await chat.press(token(review, "Edit"))
        await chat.press(token(await chat.card(), "Size"))
        await chat.press(token(await chat.card(), "Small"))
        await chat.press(token(await chat.card(), "Submit"))
        answer = await waiting
        assert answer.action is FormAction.ACCEPT
        assert answer.content == {"day": "2026-03-31", "size": "s"}
        assert "Submitted by Anna" in await chat.closed()


@requirement("elicitation.outcomes")
async def test_decline_cancel_and_no_answer_are_three_things(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        declined = eliciting(chat, call, CONFIRM)
        card = await chat.card()
        assert buttons(card) == ["Submit", "Decline", "Cancel"]
        await chat.press(token(card, "Decline"))
        cancelled = eliciting(chat, call, WHEN)
        await chat.press(token(await chat.card(), "Cancel"))
        expired = eliciting(chat, call, CONFIRM, seconds=60)
        await chat.card()
        chat.clock.advance(60)
        assert await declined == FormAnswer(action=FormAction.DECLINE, reason="declined by Anna")
        assert await cancelled == FormAnswer(action=FormAction.CANCEL, reason="cancelled by Anna")
        assert await expired == FormAnswer(
            action=FormAction.CANCEL, reason="not answered: no answer in 60 s"
        )


async def test_a_confirmation_is_submitted_at_once(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = eliciting(chat, await chat.call(), CONFIRM)
        await chat.press(token(await chat.card(), "Submit"))
        assert await waiting == FormAnswer(action=FormAction.ACCEPT, content={})


@requirement("elicitation.form.invalid", "case.el5")
async def test_what_cannot_be_asked_is_declined_with_the_reason_in_the_chat(
    tmp_path: Path,
) -> None:
    async with people(tmp_path / "state.db") as chat:
        problem = 'the field "x" asks for a secret'
        answer = await elicit(chat, await chat.call(), CONFIRM, problem=problem)
        assert answer == FormAnswer(action=FormAction.DECLINE, reason=problem, asked=False)
        (notice,) = await chat.sent()
        assert notice.body == f"demo asked something that was declined: {problem}"


@requirement("elicitation.legacy_separation")
async def test_what_is_told_of_a_call_is_said_in_its_chat_once(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        for text in ("It waits.", "It waits.", "It goes on."):
            await chat.broker.tell(call, text)
        assert [notice.body for notice in await chat.sent()] == ["It waits.", "It goes on."]


LINK = FormRequest(
    server="demo",
    server_sha="s",
    tool="order",
    form=Form(message="Sign in first."),
    url="https://example.com/sign_in?state=1",
)


@requirement("elicitation.url_mode")
async def test_a_link_is_shown_with_its_host_and_given_only_to_who_agrees(tmp_path: Path) -> None:
    async def ask(chat: People, call: ToolCall) -> FormAnswer:
        async with limit() as deadline:
            return await chat.broker.elicit(call, LINK, deadline=deadline)

    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        waiting = chat.tasks.create_task(ask(chat, call), name="link")
        card = await chat.card()
        assert "demo · order" in card.body
        assert "Sign in first." in card.body
        assert '"host": "example.com",\n  "url": "https://example.com/sign_in?state=1"' in card.body
        assert buttons(card) == ["Open link", "Decline", "Cancel"]
        await chat.press(token(card, "Open link"), by=BEN)
        assert not waiting.done()
        await chat.press(token(card, "Open link"))
        assert await waiting == FormAnswer(action=FormAction.ACCEPT, content={})
        texts = [item.body for item in [*chat.log, *await chat.sent()]]
        assert "The link of demo: <https://example.com/sign_in?state=1>" in texts

        for label, action in (("Decline", FormAction.DECLINE), ("Cancel", FormAction.CANCEL)):
            chat.log.clear()
            waiting = chat.tasks.create_task(ask(chat, call), name="link")
            await chat.press(token(await chat.card(), label))
            assert (await waiting).action is action
            assert not [x for x in [*chat.log, *await chat.sent()] if "The link of" in x.body]


@requirement("case.el7")
async def test_two_forms_of_one_call_are_two_cards(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        first = eliciting(chat, call, CONFIRM)
        first_card = await chat.card()
        second = eliciting(chat, call, CONFIRM)
        second_card = await chat.card()
        await chat.press(token(second_card, "Decline"))
        assert (await second).action is FormAction.DECLINE
        assert not first.done()
        await chat.press(token(first_card, "Submit"))
        assert (await first).action is FormAction.ACCEPT


@requirement("elicitation.server_cancels")
async def test_a_server_that_takes_its_form_back_withdraws_the_card(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = eliciting(chat, await chat.call(), WHEN)
        card = await chat.card()
        waiting.cancel()
        assert "No longer waiting: the server took it back" in await chat.closed()
        await chat.type(card, "2026-03-31")
        (late,) = await chat.sent()
        assert late.body.startswith("Already settled: No longer waiting")


async def test_the_form_of_a_turn_that_a_person_stops_says_so(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        assert call.turn is not None
        waiting = eliciting(chat, call, WHEN)
        await chat.card()
        chat.broker.abandon(call.turn)
        waiting.cancel()
        await asyncio.wait([waiting])
        await chat.broker.withdraw_turn(call.turn, "stopped")
        assert "No longer waiting: stopped" in await chat.closed()


async def test_at_shutdown_a_form_stays_as_it_is(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = eliciting(chat, await chat.call(), WHEN)
        await chat.card()
        chat.broker.stop()
        waiting.cancel()
        await asyncio.wait([waiting])
        question = await chat.only_question()
        assert question.state is QuestionState.PENDING
        await chat.broker.withdraw([question.id], reason="the gateway was restarted")
        assert "No longer waiting: the gateway was restarted" in await chat.closed()


async def test_a_bystander_answers_no_form(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = eliciting(chat, await chat.call(), WHEN)
        card = await chat.card()
        await chat.type(card, "2026-03-31", by=BEN)
        (notice,) = await chat.sent()
        assert notice.body == "Only Anna or an admin can decide this."
        await chat.press(token(card, "Decline"))
        await waiting


async def test_an_answer_to_an_older_card_is_told_and_changes_nothing(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = eliciting(chat, await chat.call(), WHEN)
        old = await chat.card()
        await chat.type(old, "2026-03-31")
        new = await chat.card()
        await chat.type(old, "2026-04-30")
        (notice,) = await chat.sent()
        assert "older" in notice.body
        question = await chat.only_question()
        state = await chat.readers.questions.form_state(question.id)
        assert state is not None
        assert dict(state.answers) == {"day": "2026-03-31"}
        await chat.press(token(new, "Cancel"))
        await waiting


async def test_a_form_is_not_approved_but_may_be_denied_by_command(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        waiting = eliciting(chat, await chat.call(), WHEN)
        card = await chat.card()
        assert "needs answers" in await chat.say("approve", short(card))
        assert "Declined." in await chat.say("deny", short(card))
        assert (await waiting).action is FormAction.DECLINE


@requirement("guided.completes")
async def test_arguments_are_asked_by_form_and_a_restart_continues_the_same_card(
    tmp_path: Path,
) -> None:
    async def fill(chat: People, call: ToolCall) -> FormAnswer:
        async with limit() as deadline:
            return await chat.broker.fill(
                call, WHEN, tool="order", server="demo", deadline=deadline
            )

    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        waiting = chat.tasks.create_task(fill(chat, call))
        await chat.type(await chat.card(), "2026-03-31")
        card = await chat.card()
        waiting.cancel()
        clock = chat.clock
    async with people(tmp_path / "state.db", clock=clock) as chat:
        waiting = chat.tasks.create_task(fill(chat, call))
        await chat.press(token(card, "Small"))
        await chat.press(token(await chat.card(), "Skip"))
        await chat.press(token(await chat.card(), "Submit"))
        answer = await waiting
        assert answer.content == {"day": "2026-03-31", "size": "s"}
        assert await fill(chat, call) == answer


@requirement("guided.completes")
async def test_a_tool_without_arguments_needs_no_form(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        async with limit() as deadline:
            answer = await chat.broker.fill(
                call, Form(message=""), tool="t", server="demo", deadline=deadline
            )
        assert answer == FormAnswer(action=FormAction.ACCEPT, content={})


async def test_a_choice_is_picked_with_one_press(tmp_path: Path) -> None:
    options = [Option(value=f"tool{n}", label=f"Tool {n}") for n in range(10)]

    async def choose(chat: People, call: ToolCall) -> str | None:
        async with limit() as deadline:
            return await chat.broker.choose(
                call, message="Which tool?", options=options, deadline=deadline
            )

    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()
        picking = chat.tasks.create_task(choose(chat, call))
        await chat.press(token(await chat.card(), "More (page 1 of 2)"))
        await chat.press(token(await chat.card(), "Tool 9"))
        assert await picking == "tool9"
        assert "Chosen by Anna: Tool 9" in await chat.closed()
        assert not await chat.readers.questions.open(limit=10)
        other = await chat.call(claim=await chat.turn(sender=BEN, place=dm(BEN)))
        leaving = chat.tasks.create_task(choose(chat, other))
        card = await chat.card()
        await chat.press(token(card, "Cancel"), by=BEN, place=dm(BEN))
        assert await leaving is None
