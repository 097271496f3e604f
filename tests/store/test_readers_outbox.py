from datetime import timedelta

import pytest

from gateway.domain.delivery import Delivery, DeliveryKind, DeliveryStatus, Mark
from gateway.domain.ids import Actor, ChatType, DeliveryId, Place
from gateway.domain.operations.upkeep import AddAudit
from gateway.domain.question import Surface
from store.codec import from_ms, ms
from store.readers import OpenReaders
from tests.store.rows import DM, Rows
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


async def test_a_group_tells_the_state_of_its_parts_in_order(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    second = rows.delivery(conversation, group_key="g", part=1, state="dead", last_error="no")
    first = rows.delivery(conversation, group_key="g", part=0, state="sent", native_id="42")
    rows.delivery(conversation, group_key="other")

    assert await readers.ports.deliveries.group("g") == (
        DeliveryStatus(id=DeliveryId(first), state="sent", native_id="42", error=""),
        DeliveryStatus(id=DeliveryId(second), state="dead", native_id=None, error="no"),
    )


async def test_unsure_sends_are_told_by_account_as_they_were_attempted(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    other = rows.conversation(
        Place(platform="telegram", account="b", chat="1", chat_type=ChatType.DM)
    )
    sent = rows.delivery(conversation, state="sent", native_id="41")
    rows.delivery(other, state="uncertain")
    edit = rows.delivery(
        conversation,
        kind="edit",
        edits_id=sent,
        state="uncertain",
        attempts=2,
        marks="plain,repeat",
        idem_key="k",
        payload='{"a":1}',
    )

    assert await readers.ports.deliveries.unsure("telegram", "") == (
        Delivery(
            id=DeliveryId(edit),
            place=DM,
            kind=DeliveryKind.EDIT,
            body="hello",
            payload='{"a":1}',
            key="k",
            attempt=2,
            edits="41",
            marks=frozenset({Mark.PLAIN, Mark.REPEAT}),
        ),
    )


async def test_the_newest_sent_card_of_each_pending_question_is_told(
    readers: OpenReaders, rows: Rows
) -> None:
    conversation = rows.conversation()
    first, second = rows.question(conversation), rows.question(conversation)
    closed = rows.question(conversation, state="denied")
    sent: dict[str, object] = {"kind": "card", "state": "sent", "native_id": "1"}
    rows.delivery(conversation, question_id=second, **sent)
    newest = rows.delivery(conversation, question_id=second, **sent)
    rows.delivery(conversation, question_id=second, kind="card")
    rows.delivery(conversation, question_id=closed, **sent)
    only = rows.delivery(conversation, question_id=first, **sent)

    cards = await readers.ports.deliveries.cards(DM)

    assert [card.id for card in cards] == [newest, only]


async def test_the_next_delivery_waits_for_its_time_its_chat_and_its_budget(
    readers: OpenReaders, rows: Rows, clock: ManualClock
) -> None:
    now = ms(clock.now())
    next_at = readers.ports.deliveries.next_at
    assert await next_at("telegram", "") is None

    conversation = rows.conversation()
    first = rows.delivery(conversation, next_at=now)
    rows.delivery(conversation, next_at=0)
    assert await next_at("telegram", "") == clock.now(), "order holds the second one"
    rows.update("chat", 1, parked_until=now + 2_000)
    assert await next_at("telegram", "") == clock.now() + timedelta(seconds=2)
    rows.update("chat", 1, budget_tat=now + 3_000)
    assert await next_at("telegram", "") == clock.now() + timedelta(seconds=3)
    rows.update("delivery", first, state="sending")
    assert await next_at("telegram", "") is None, "what follows waits for it"
    assert await next_at("slack", "") is None


async def test_an_edit_waits_for_its_target_alone(readers: OpenReaders, rows: Rows) -> None:
    conversation = rows.conversation()
    target = rows.delivery(conversation, state="sending")
    rows.delivery(conversation, kind="edit", edits_id=target, next_at=5)
    waiting = await readers.ports.deliveries.next_at("telegram", "")
    rows.delivery(conversation, state="uncertain")
    rows.update("delivery", target, state="sent", native_id="1")

    assert waiting is None
    assert await readers.ports.deliveries.next_at("telegram", "") == from_ms(5)


async def test_usage_is_summed_by_model_since_a_time(readers: OpenReaders, rows: Rows) -> None:
    ada, bob = Actor(platform="telegram", id="7"), Actor(platform="slack", id="U1")
    for actor, model, at in ((ada, "m", 1), (ada, "m", 5), (ada, "n", 5), (bob, "m", 6)):
        rows.insert(
            "usage",
            actor=str(actor),
            purpose="turn",
            model=model,
            input_tokens=10,
            output_tokens=1,
            ms=0,
            at=at,
        )
    usage = readers.ports.books.usage

    assert await usage(since=from_ms(5), actor=ada) == {"m": 11, "n": 11}
    assert await usage(since=from_ms(5)) == {"m": 22, "n": 11}
    assert await usage(since=from_ms(7)) == {}


async def test_audit_lines_come_newest_first(readers: OpenReaders, rows: Rows) -> None:
    for number in range(3):
        rows.insert(
            "audit",
            at=number,
            actor="cli:1000",
            surface="cli",
            action=f"act{number}",
            subject="rule:1",
            detail='{"n":1}',
        )
    audit = readers.ports.books.audit

    newest = await audit(limit=2)
    older = await audit(before=2, limit=2)

    assert [line.action for line in newest] == ["act2", "act1"]
    assert older == (
        AddAudit(
            actor=Actor(platform="cli", id="1000"),
            surface=Surface.CLI,
            action="act0",
            subject="rule:1",
            detail={"n": 1},
        ),
    )
