from collections.abc import Sequence

import pytest

from gateway.domain.conversation import Ambiguous
from gateway.domain.errors import NotFound
from gateway.domain.form import FieldKind, Form, FormField, FormState
from gateway.domain.ids import Actor, ChatType, Place, QuestionId, TurnId
from gateway.domain.question import (
    Action,
    ApproverPolicy,
    Approvers,
    Button,
    Decision,
    Question,
    QuestionState,
    Surface,
)
from store.codec import form_to_json, from_ms, ms
from store.readers import OpenReaders
from tests.store.rows import DM, Rows
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

OTHER = Place(platform="slack", chat="C1", chat_type=ChatType.CHANNEL)


def ids(found: Question | Ambiguous | Sequence[Question] | None) -> list[str]:
    if isinstance(found, Question):
        return [found.id]
    assert isinstance(found, Sequence)
    return [item.id for item in found]


async def test_a_question_reads_back_with_where_it_belongs_and_how_it_ended(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation, shown_in = rows.conversation(), rows.conversation(OTHER)
    form = Form(message="m", fields=(FormField(name="a", kind=FieldKind.TEXT, label="A"),))
    question = rows.question(
        conversation,
        shown_in=shown_in,
        kind="elicitation",
        approvers='{"ids":["slack:U1"],"policy":"list"}',
        actions='["submit","decline"]',
        quorum=2,
        turn_id=5,
        step_n=6,
        args=None,
        form=form_to_json(form),
        state="accepted",
        content='{"a":"x"}',
        decision="submit",
        decided_by="slack:U1",
        decided_via="modal",
        reason="why",
        decided_at=9,
        consumed_at=10,
    )

    found = await readers.ports.questions.find(question)

    assert isinstance(found, Question)
    assert (found.place, found.shown_in, found.form) == (DM, OTHER, form)
    assert (found.turn, found.step, found.session, found.quorum) == (5, 6, 1, 2)
    assert found.approvers == Approvers(policy=ApproverPolicy.LIST, ids=("slack:U1",))
    assert found.actions == (Action.SUBMIT, Action.DECLINE)
    assert (found.arguments, found.consumed) == (None, True)
    assert found.decision == Decision(
        question=QuestionId(question),
        state=QuestionState.ACCEPTED,
        action=Action.SUBMIT,
        by=Actor(platform="slack", id="U1"),
        via=Surface.MODAL,
        at=from_ms(9),
        reason="why",
        content={"a": "x"},
    )


async def test_a_question_is_found_by_id_short_or_prefix(readers: OpenReaders, rows: Rows) -> None:
    conversation = rows.conversation()
    closed = rows.question(conversation, id="abcd" + "2" * 22, state="denied")
    pending = rows.question(conversation, id="abcde" + "3" * 21, short="abcde")
    find = readers.ports.questions.find

    assert ids(await find(closed)) == [closed]
    assert ids(await find(" ABCDE ")) == [pending]
    assert ids(await find("abcd")) == [pending], "the only pending one is meant"
    assert ids(await find("abcd2")) == [closed]
    assert await find("abc") is None
    assert await find("zzzz") is None
    assert await find("") is None


@requirement("case.t3")
async def test_a_prefix_of_several_pending_ones_is_ambiguous(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    first = rows.question(conversation, id="abcd2" + "2" * 21, short="abcd2")
    second = rows.question(conversation, id="abcd3" + "3" * 21, short="abcd3")

    found = await readers.ports.questions.find("abcd")

    assert found == Ambiguous(candidates=(first, second))


async def test_a_step_finds_the_question_it_asked_last(readers: OpenReaders, rows: Rows) -> None:
    conversation = rows.conversation()
    rows.question(conversation, turn_id=1, step_n=2, created_at=5, state="cancelled")
    latest = rows.question(conversation, turn_id=1, step_n=2, created_at=5)
    rows.question(conversation, turn_id=1, step_n=3)

    assert ids(await readers.ports.questions.of_step(TurnId(1), 2)) == [latest]
    assert await readers.ports.questions.of_step(TurnId(2), 2) is None


async def test_pending_questions_are_listed_by_turn_place_and_expiry(
    readers: OpenReaders, rows: Rows, clock: ManualClock
) -> None:
    here, there = rows.conversation(), rows.conversation(OTHER)
    now = ms(clock.now())
    guided = rows.question(here, kind="choice", turn_id=1, expires_at=now)
    other = rows.question(here, shown_in=there, turn_id=2, expires_at=now + 1)
    rows.question(here, state="expired", turn_id=1)
    questions = readers.ports.questions

    assert ids(await questions.pending()) == [guided, other]
    assert ids(await questions.pending(limit=1)) == [guided]
    assert ids(await questions.pending(turn=TurnId(2))) == [other]
    assert ids(await questions.pending(shown_in=OTHER)) == [other]
    assert ids(await questions.pending(shown_in=DM)) == [guided]
    assert ids(await questions.pending(due=clock.now())) == [guided]
    assert await questions.next_expiry() == clock.now()


async def test_open_ones_leave_out_guided_and_expired_questions(
    readers: OpenReaders, rows: Rows, clock: ManualClock
) -> None:
    conversation = rows.conversation()
    now = ms(clock.now())
    rows.question(conversation, kind="arguments")
    rows.question(conversation, kind="choice")
    rows.question(conversation, expires_at=now)
    listed = rows.question(conversation, kind="sampling", expires_at=now + 1)

    assert ids(await readers.ports.questions.open(limit=9)) == [listed]


async def test_nothing_pending_never_expires(readers: OpenReaders, rows: Rows) -> None:
    rows.question(rows.conversation(), state="denied")

    assert await readers.ports.questions.next_expiry() is None


async def test_all_questions_come_newest_first_page_by_page(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    asked = [
        rows.question(conversation, state="denied", created_at=time) for time in (1, 2, 2, 2, 3)
    ]
    page = readers.ports.questions.page

    seen = ids(await page(limit=2))
    while following := ids(await page(before=seen[-1], limit=2)):
        seen += following

    assert sorted(seen) == sorted(asked)
    assert (seen[0], seen[-1]) == (asked[-1], asked[0])
    with pytest.raises(NotFound):
        await page(before="nobody", limit=2)


async def test_a_token_leads_to_its_question_and_meaning(readers: OpenReaders, rows: Rows) -> None:
    question = rows.question(rows.conversation())
    for token, action in (("tb", "deny"), ("ta", "allow-once")):
        rows.insert("button", token=token, question_id=question, action=action, created_at=0)
    questions = readers.ports.questions

    found = await questions.by_token("ta")
    buttons = await questions.buttons(QuestionId(question))

    assert found is not None
    assert found[0].id == question
    assert found[1] == Button(token="ta", action=Action.ALLOW_ONCE, label="")
    assert [button.token for button in buttons] == ["tb", "ta"]
    assert await questions.by_token("tc") is None


async def test_a_form_tells_how_far_it_has_come(readers: OpenReaders, rows: Rows) -> None:
    question = rows.question(rows.conversation())
    rows.insert(
        "form_progress",
        question_id=question,
        answers='{"a":null}',
        skipped='["b"]',
        field="c",
        rev=3,
        updated_at=0,
    )
    read = readers.ports.questions.form_state

    assert await read(QuestionId(question)) == FormState(
        rev=3, field="c", answers={"a": None}, skipped=frozenset({"b"})
    )
    assert await read(QuestionId("nobody")) is None
