"""What a store promises about questions: asked whole, settled once, every attempt kept apart."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.delivery import Dead, Delivery, DeliveryKind, Part, Receipt, Sent
from gateway.domain.errors import Conflict, NotFound
from gateway.domain.events import QuestionAsked, QuestionSettled
from gateway.domain.form import FieldKind, Form, FormField, FormState
from gateway.domain.ids import Cursor, QuestionId
from gateway.domain.operations.inbound import Accepted
from gateway.domain.operations.questions import (
    AnswerField,
    Counted,
    ExpireDue,
    RefuseAttempt,
    Refused,
    Settled,
    Stale,
    Why,
    Withdraw,
)
from gateway.domain.operations.turns import DoneStep, SentStep, StepState
from gateway.domain.operations.upkeep import RevokeRule
from gateway.domain.question import (
    Action,
    Question,
    QuestionKind,
    QuestionState,
    Record,
    Surface,
)
from gateway.domain.tools import ToolSpec
from store import OpenStore
from tests.contracts.values import (
    ANNA,
    BEN,
    CARA,
    GROUP,
    HOME,
    ask,
    button,
    card,
    command,
    decide,
    edit,
    message,
    planned,
    press,
    question,
    record,
    sending,
)
from tests.support.clock import NOON, ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

FORM = Form(
    message="Book a table",
    fields=(
        FormField(name="name", kind=FieldKind.TEXT, label="Name"),
        FormField(name="note", kind=FieldKind.TEXT, label="Note", required=False),
    ),
)
FORM_ACTIONS = (Action.SUBMIT, Action.EDIT, Action.DECLINE, Action.CANCEL)


def form_question(number: int = 1) -> Question:
    return question(number, kind=QuestionKind.ELICITATION, actions=FORM_ACTIONS, form=FORM)


async def found(opened: OpenStore, identifier: QuestionId) -> Question:
    stored = await opened.readers.questions.find(identifier)
    assert isinstance(stored, Question)
    return stored


async def facts(opened: OpenStore) -> list[str]:
    page = await opened.readers.events.after(Cursor(1), limit=200)
    return [type(event.fact).__name__ for event in page.events]


async def send_next(opened: OpenStore) -> Delivery | None:
    """Send what is next, as an adapter that always succeeds."""
    delivery = await opened.store.claim_delivery(sending())
    if delivery is not None:
        receipt = Receipt(native_id=f"native-{delivery.id}")
        await opened.store.mark_delivery(Sent(id=delivery.id, receipt=receipt))
    return delivery


# --- asking -----------------------------------------------------------------------


async def test_a_question_is_stored_with_its_buttons_its_card_and_its_event(
    opened: OpenStore,
) -> None:
    asked = await opened.store.ask(
        ask(question(shown_in=GROUP), buttons=(button("t1"), button("t2", Action.DENY)))
    )

    assert asked.session is not None
    assert await found(opened, asked.id) == asked
    assert [item.token for item in await opened.readers.questions.buttons(asked.id)] == ["t1", "t2"]
    by_token = await opened.readers.questions.by_token("t2")
    assert by_token is not None
    assert (by_token[0].id, by_token[1].action) == (asked.id, Action.DENY)
    delivery = await send_next(opened)
    assert delivery is not None
    assert (delivery.kind, delivery.place) == (DeliveryKind.CARD, GROUP)
    page = await opened.readers.events.after(Cursor(1), limit=10)
    assert [type(event.fact) for event in page.events] == [QuestionAsked]
    assert page.events[0].session_key == HOME.session_key


async def test_a_question_belongs_to_its_step(opened: OpenStore) -> None:
    await opened.store.accept(message("go"))
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    await opened.store.record_steps(record(claim, planned=(planned(1),)))

    asked = await opened.store.ask(ask(question(claim=claim, step=1)))

    assert await opened.readers.questions.of_step(claim.turn, 1) == asked


async def test_a_repeated_question_is_the_stored_one(opened: OpenStore) -> None:
    first = await opened.store.ask(ask(question(), buttons=(button("t1"),)))

    again = await opened.store.ask(ask(question(), buttons=(button("t1"),)))

    assert again == first
    assert await facts(opened) == ["QuestionAsked"]
    assert await send_next(opened) is not None
    assert await send_next(opened) is None


async def test_an_id_of_another_question_is_a_conflict(opened: OpenStore) -> None:
    first = question()
    await opened.store.ask(ask(first))
    same_short = replace(first, id=QuestionId("0001" + "b" * 22))

    with pytest.raises(Conflict):
        await opened.store.ask(ask(replace(first, args_sha="other")))
    with pytest.raises(Conflict):
        await opened.store.ask(ask(same_short))
    await opened.store.decide(decide(first))

    assert (await opened.store.ask(ask(same_short))).short == first.short


async def test_guided_questions_are_no_event(opened: OpenStore) -> None:
    choice = question(kind=QuestionKind.CHOICE, actions=(Action.PICK, Action.CANCEL))

    await opened.store.ask(ask(choice))
    await opened.store.decide(decide(choice, Action.CANCEL))

    assert await facts(opened) == []


async def test_a_card_waits_for_the_file_with_its_arguments(opened: OpenStore) -> None:
    file = Part(kind=DeliveryKind.FILE, body="call.json")
    await opened.store.ask(ask(question(), file=file))

    first = await opened.store.claim_delivery(sending())
    between = await opened.store.claim_delivery(sending())
    assert first is not None
    await opened.store.mark_delivery(Sent(id=first.id, receipt=Receipt(native_id="1")))
    second = await send_next(opened)

    assert second is not None
    assert (first.kind, between, second.kind) == (DeliveryKind.FILE, None, DeliveryKind.CARD)


async def test_arguments_that_cannot_be_shown_are_never_allowed(opened: OpenStore) -> None:
    file = Part(kind=DeliveryKind.FILE, body="call.json")
    asked = await opened.store.ask(ask(question(), file=file))
    delivery = await opened.store.claim_delivery(sending())
    assert delivery is not None

    await opened.store.mark_delivery(Dead(id=delivery.id, error="too large"))

    ended = await found(opened, asked.id)
    assert ended.state is QuestionState.CANCELLED
    assert ended.decision is not None
    assert ended.decision.reason == "the arguments could not be shown"
    assert await send_next(opened) is None
    assert await facts(opened) == ["QuestionAsked", "QuestionSettled"]
    ruling = await opened.store.decide(decide(asked))
    assert isinstance(ruling, Refused)


async def test_a_card_that_cannot_be_delivered_ends_its_question(opened: OpenStore) -> None:
    asked = await opened.store.ask(ask(question()))
    delivery = await opened.store.claim_delivery(sending())
    assert delivery is not None

    await opened.store.mark_delivery(Dead(id=delivery.id, error="kicked"))

    ended = await found(opened, asked.id)
    assert ended.state is QuestionState.CANCELLED
    assert ended.decision is not None
    assert ended.decision.reason == "the card could not be delivered"
    assert await facts(opened) == ["QuestionAsked", "QuestionSettled"]


@requirement("case.f5")
async def test_a_chat_allows_nothing_before_the_file_with_its_arguments_is_there(
    opened: OpenStore,
) -> None:
    file = Part(kind=DeliveryKind.FILE, body="call.json")
    first = await opened.store.ask(ask(question(1), file=file))
    second = await opened.store.ask(ask(question(2), file=file))
    by_command = replace(decide(first), surface=Surface.COMMAND)

    early = await opened.store.decide(by_command)
    denied = await opened.store.decide(decide(second, Action.DENY))
    await send_next(opened)
    later = await opened.store.decide(by_command)

    assert isinstance(early, Refused)
    assert early.why is Why.NOT_SHOWN
    assert isinstance(denied, Settled)
    assert isinstance(later, Settled)


# --- deciding ----------------------------------------------------------------------


async def test_a_decision_settles_the_question_closes_its_card_and_is_told(
    opened: OpenStore,
) -> None:
    asked = await opened.store.ask(ask(question(), buttons=(button("t1"),)))
    shown = await send_next(opened)
    assert shown is not None

    ruling = await opened.store.decide(decide(asked, token="t1", closing=edit("Allowed once")))

    assert isinstance(ruling, Settled)
    stored = await found(opened, asked.id)
    assert (stored.state, stored.decision) == (QuestionState.ALLOWED, ruling.decision)
    assert ruling.decision.by is not None
    assert str(ruling.decision.by) == str(ANNA)
    closing = await send_next(opened)
    assert closing is not None
    assert (closing.kind, closing.body) == (DeliveryKind.EDIT, "Allowed once")
    assert closing.edits == f"native-{shown.id}"
    page = await opened.readers.events.after(Cursor(1), limit=10)
    fact = page.events[-1].fact
    assert isinstance(fact, QuestionSettled)
    assert (fact.state, fact.action, fact.via) == (
        QuestionState.ALLOWED,
        Action.ALLOW_ONCE,
        Surface.BUTTON,
    )


async def test_of_many_decisions_at_once_exactly_one_wins(opened: OpenStore) -> None:
    asked = await opened.store.ask(ask(question()))

    rulings = await asyncio.gather(
        *(
            opened.store.decide(
                decide(
                    asked, Action.ALLOW_ONCE if n % 2 else Action.DENY, by=replace(ANNA, id=f"{n}")
                )
            )
            for n in range(20)
        )
    )

    won = [ruling for ruling in rulings if isinstance(ruling, Settled)]
    lost = [ruling for ruling in rulings if isinstance(ruling, Refused)]
    assert (len(won), len(lost)) == (1, 19)
    assert {ruling.why for ruling in lost} == {Why.LATE}
    assert {ruling.question.decision for ruling in lost if ruling.question} == {won[0].decision}


async def test_a_decision_says_why_it_changed_nothing(
    opened: OpenStore, clock: ManualClock
) -> None:
    asked = await opened.store.ask(ask(question()))
    unknown = await opened.store.decide(decide(question(9)))
    not_offered = await opened.store.decide(decide(asked, Action.SUBMIT))
    changed = await opened.store.decide(decide(asked, args_sha="other"))
    clock.advance(300)
    expired = await opened.store.decide(decide(asked))
    await opened.store.expire_due(ExpireDue(questions={asked.id: None}))
    later = await opened.store.decide(decide(asked))

    whys = [
        ruling.why
        for ruling in (unknown, not_offered, changed, expired, later)
        if isinstance(ruling, Refused)
    ]
    assert whys == [Why.UNKNOWN, Why.NOT_OFFERED, Why.CHANGED, Why.EXPIRED, Why.EXPIRED]
    assert (await found(opened, asked.id)).state is QuestionState.EXPIRED


@requirement("approval.decide.audit")
async def test_the_books_hold_every_try_and_what_the_call_gave(
    opened: OpenStore, clock: ManualClock
) -> None:
    await opened.store.accept(message("go"))
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    await opened.store.record_steps(record(claim, planned=(planned(1),)))
    asked = await opened.store.ask(ask(question(claim=claim, step=1)))
    other = await opened.store.ask(ask(question(2)))
    await opened.store.refuse(
        RefuseAttempt(
            question=asked.id,
            actor=BEN,
            surface=Surface.BUTTON,
            action=Action.ALLOW_ONCE,
            why=Why.NOT_ALLOWED,
        )
    )
    clock.advance(5)
    await opened.store.decide(replace(decide(asked), reason="as agreed"))
    await opened.store.decide(decide(asked, Action.DENY, by=CARA))
    before = await opened.readers.questions.records([asked.id, other.id])
    await opened.store.record_steps(record(claim, sent=(SentStep(n=1, question=asked.id),)))
    done = DoneStep(n=1, state=StepState.OK, result="{}")
    await opened.store.record_steps(record(claim, done=(done,)))

    after = await opened.readers.questions.records([asked.id])

    assert before[other.id] == Record()
    assert before[asked.id].result == ""
    assert [
        (str(item.by), item.via, item.action, item.outcome, item.reason, item.at)
        for item in after[asked.id].attempts
    ] == [
        ("telegram:2", Surface.BUTTON, Action.ALLOW_ONCE, "not_allowed", "", NOON),
        (
            "telegram:1",
            Surface.BUTTON,
            Action.ALLOW_ONCE,
            "counted",
            "as agreed",
            NOON + timedelta(seconds=5),
        ),
        ("telegram:3", Surface.BUTTON, Action.DENY, "late", "", NOON + timedelta(seconds=5)),
    ]
    assert after[asked.id].result == "ok"


async def test_a_quorum_counts_different_people_and_one_denial_ends_it(opened: OpenStore) -> None:
    first = await opened.store.ask(ask(question(1, quorum=2)))
    second = await opened.store.ask(ask(question(2, quorum=2)))

    rulings = [
        await opened.store.decide(decide(first, by=ANNA)),
        await opened.store.decide(decide(first, by=ANNA)),
        await opened.store.decide(decide(first, by=BEN)),
        await opened.store.decide(decide(second, by=ANNA)),
        await opened.store.decide(decide(second, Action.DENY, by=CARA)),
    ]

    assert rulings[0] == Counted(votes_needed=1)
    assert isinstance(rulings[1], Refused)
    assert rulings[1].why is Why.REPEATED
    assert isinstance(rulings[2], Settled)
    assert rulings[3] == Counted(votes_needed=1)
    assert isinstance(rulings[4], Settled)
    assert (await found(opened, first.id)).state is QuestionState.ALLOWED
    assert (await found(opened, second.id)).state is QuestionState.DENIED


def spec(*, definition_sha: str = "definition", server_sha: str = "server") -> ToolSpec:
    return ToolSpec(
        server="notes",
        name="add_note",
        alias="mcp__notes__add_note",
        title="",
        description="",
        input_schema={},
        definition_sha=definition_sha,
        server_sha=server_sha,
    )


async def test_a_standing_rule_covers_the_very_definition_it_was_given_for(
    opened: OpenStore,
) -> None:
    asked = await opened.store.ask(ask(question()))
    await opened.store.decide(decide(asked, Action.ALLOW_SESSION))
    rules = opened.readers.rules

    here = await rules.match(spec(), session=asked.session)
    await opened.store.accept(command("new", new_session=True))
    view = await opened.readers.conversations.find(HOME.session_key)
    assert view is not None

    assert here is not None
    assert await rules.match(spec(), session=view.session) is None
    assert await rules.match(spec(definition_sha="changed"), session=asked.session) is None
    assert await rules.match(spec(server_sha="changed"), session=asked.session) is None
    assert await opened.store.use_rule(here)
    (live,) = await rules.live()
    assert live.used_count == 1
    await opened.store.revoke_rule(RevokeRule(rule=here, by=ANNA))
    assert not await opened.store.use_rule(here)


async def test_with_a_quorum_the_narrowest_scope_holds(opened: OpenStore) -> None:
    asked = await opened.store.ask(ask(question(quorum=2)))

    await opened.store.decide(decide(asked, Action.ALLOW_ALWAYS, by=ANNA))
    ruling = await opened.store.decide(decide(asked, Action.ALLOW_SESSION, by=BEN))

    assert isinstance(ruling, Settled)
    assert ruling.decision.action is Action.ALLOW_SESSION
    assert [rule.scope for rule in await opened.readers.rules.live()] == ["session"]


async def test_the_same_permission_twice_is_one_rule(opened: OpenStore) -> None:
    for number in (1, 2):
        asked = await opened.store.ask(ask(question(number)))
        await opened.store.decide(decide(asked, Action.ALLOW_ALWAYS))

    assert [rule.scope for rule in await opened.readers.rules.live()] == ["always"]


async def test_a_decision_is_done_with_the_event_that_brought_it(opened: OpenStore) -> None:
    asked = await opened.store.ask(ask(question(), buttons=(button("t1"),)))
    pressed = await opened.store.accept(press("t1"))
    late = await opened.store.accept(press("t1"))
    bystander = await opened.store.accept(press("t1"))
    assert isinstance(pressed, Accepted)
    assert isinstance(late, Accepted)
    assert isinstance(bystander, Accepted)

    await opened.store.refuse(
        RefuseAttempt(
            question=asked.id,
            actor=BEN,
            surface=Surface.BUTTON,
            action=Action.ALLOW_ONCE,
            why=Why.NOT_ALLOWED,
            inbound=bystander.inbound,
        )
    )
    still = await found(opened, asked.id)
    await opened.store.decide(replace(decide(asked), inbound=pressed.inbound))
    await opened.store.decide(replace(decide(asked), inbound=late.inbound))

    assert still.state is QuestionState.PENDING
    assert await opened.readers.inbox.controls() == ()


async def test_an_attempt_on_an_unknown_question_is_only_done_with(opened: OpenStore) -> None:
    attempt = RefuseAttempt(
        question=QuestionId("z" * 26),
        actor=BEN,
        surface=Surface.COMMAND,
        action=Action.DENY,
        why=Why.UNKNOWN,
    )

    await opened.store.refuse(attempt)
    await opened.store.refuse(replace(attempt, why=Why.NOT_ALLOWED))


# --- without a person ------------------------------------------------------------------


async def test_withdrawing_and_expiring_end_what_is_pending_and_nothing_else(
    opened: OpenStore, clock: ManualClock
) -> None:
    first, second, third = [
        await opened.store.ask(
            ask(question(n, expires_at=NOON + timedelta(seconds=100 if n == 3 else 1_000)))
        )
        for n in (1, 2, 3)
    ]
    await opened.store.decide(decide(first))
    everything = {asked.id: edit("over") for asked in (first, second, third)}
    clock.advance(100)

    expired = await opened.store.expire_due(ExpireDue(questions=everything))
    withdrawn = await opened.store.withdraw(Withdraw(questions=everything, reason="/stop"))
    again = await opened.store.withdraw(Withdraw(questions=everything, reason="/stop"))

    assert [each.decision.question for each in expired] == [third.id]
    assert expired[0].decision.action is Action.TIMEOUT
    assert [each.decision.question for each in withdrawn] == [second.id]
    assert withdrawn[0].decision.reason == "/stop"
    assert again == ()
    assert (await found(opened, first.id)).state is QuestionState.ALLOWED


# --- forms ------------------------------------------------------------------------------


async def test_a_form_is_answered_field_by_field_and_then_submitted(opened: OpenStore) -> None:
    asked = await opened.store.ask(ask(form_question(), field="name", buttons=(button("t0"),)))
    await send_next(opened)
    answer = AnswerField(
        question=asked.id, rev=0, field="name", value="Ada", next="note", card=edit("note?")
    )

    first = await opened.store.answer_field(
        replace(answer, buttons=(button("t1", Action.SKIP),), token="t0", actor=ANNA)
    )
    second = await opened.store.answer_field(
        replace(answer, rev=1, field="note", skip=True, next="", card=card("review"))
    )
    back = await opened.store.answer_field(
        replace(answer, rev=2, field="", keep=True, next="name", card=card("name?"))
    )

    assert first == FormState(rev=1, field="note", answers={"name": "Ada"})
    assert second == FormState(
        rev=2, field="", answers={"name": "Ada"}, skipped=frozenset({"note"})
    )
    assert back == replace(second, rev=3, field="name")
    assert await opened.readers.questions.form_state(asked.id) == back
    ruling = await opened.store.decide(
        decide(asked, Action.SUBMIT, content={"name": "Ada"}, closing=edit("sent"))
    )
    assert isinstance(ruling, Settled)
    assert ruling.decision.content == {"name": "Ada"}
    bodies = [delivery.body for _ in range(5) if (delivery := await send_next(opened))]
    assert bodies == ["note?", "review", "name?", "sent"]


async def test_an_answer_on_an_old_card_changes_nothing(opened: OpenStore) -> None:
    asked = await opened.store.ask(ask(form_question(), field="name"))
    answer = AnswerField(
        question=asked.id, rev=0, field="name", value="Ada", next="note", card=edit()
    )
    await opened.store.answer_field(answer)

    stale = await opened.store.answer_field(replace(answer, value="Eve"))
    await opened.store.decide(decide(asked, Action.DECLINE))
    closed = await opened.store.answer_field(replace(answer, rev=1, field="note", value="x"))

    state = FormState(rev=1, field="note", answers={"name": "Ada"})
    assert (stale, closed) == (Stale(state=state), Stale(state=state))


async def test_a_native_form_is_answered_in_one_step(opened: OpenStore) -> None:
    asked = await opened.store.ask(ask(form_question(), field="name", buttons=(button("t0"),)))
    await send_next(opened)
    answer = AnswerField(
        question=asked.id,
        rev=0,
        field="name",
        value="Ada",
        next="",
        card=card("review"),
        left_out=frozenset({"note"}),
    )

    first = await opened.store.answer_field(answer)
    second = await opened.store.answer_field(
        replace(answer, rev=1, others={"note": "soon"}, left_out=frozenset())
    )

    assert first == FormState(rev=1, field="", answers={"name": "Ada"}, skipped=frozenset({"note"}))
    assert second == FormState(rev=2, field="", answers={"name": "Ada", "note": "soon"})


async def test_a_question_without_a_form_takes_no_answers(opened: OpenStore) -> None:
    asked = await opened.store.ask(ask(question()))

    with pytest.raises(NotFound):
        await opened.store.answer_field(
            AnswerField(question=asked.id, rev=0, field="x", next="", card=edit())
        )
