"""Filling the outbox and emptying it, one delivery at a time, in the order of its conversation."""

from typing import Final, assert_never

from gateway.domain.delivery import Dead, Delivery, DeliveryKind, Later, Mark, Outcome, Sent, Unsure
from gateway.domain.ids import ConversationId, DeliveryId, MessageId, QuestionId
from gateway.domain.operations.deliveries import ClaimDelivery, Enqueue, Enqueued, ParkChat
from store.codec import delivery_from_row, marks_from_text, marks_to_text, ms, storable
from store.operations.inbound import finish
from store.operations.outbox import Owner, add_edit, add_parts, next_ords
from store.operations.places import rows_of
from store.operations.settling import NOT_ASKED, NOT_SHOWN, cancel_unshown
from store.sql import deliveries as sql
from store.sql import inbound as inbound_sql
from store.sql import turns as turns_sql
from store.work import Work

_OF_QUESTIONS: Final = {DeliveryKind.FILE: NOT_SHOWN, DeliveryKind.CARD: NOT_ASKED}
"""What ends a question when that of it cannot be delivered."""


def enqueue(work: Work, enqueue: Enqueue) -> Enqueued:
    """Put parts into the outbox of a place, once per group key."""
    finish(work, enqueue.inbound)
    group_key = storable(enqueue.group_key)
    known = work.all(sql.GROUP, {"group_key": group_key})
    if known:
        return Enqueued(ids=tuple(DeliveryId(row["id"]) for row in known), known=True)
    if enqueue.edits is not None:
        edits = [
            add_edit(work, enqueue.edits, part, origin=enqueue.origin.value, group_key=group_key)
            for part in enqueue.parts
        ]
        return Enqueued(ids=tuple(each for each in edits if each is not None), known=False)
    place = rows_of(work, enqueue.place)
    message = _note(work, place.conversation, enqueue.note) if enqueue.note else None
    if not enqueue.parts:
        return Enqueued(ids=(), known=False)
    first, chat = next_ords(work, place.conversation, parts=len(enqueue.parts))
    ids = add_parts(
        work,
        Owner(conversation=place.conversation, chat=chat, message=message),
        enqueue.parts,
        origin=enqueue.origin.value,
        group_key=group_key,
        first_ord=first,
    )
    return Enqueued(ids=ids, known=False)


def claim_delivery(work: Work, claim: ClaimDelivery) -> Delivery | None:
    """Take the next delivery that may be sent and what it costs from its chat's budget."""
    row = work.one(
        sql.CLAIM,
        {
            "me": claim.worker,
            "until": ms(claim.lease_until),
            "platform": storable(claim.platform),
            "account": storable(claim.account),
            "burst": claim.burst_ms,
            "now": work.now,
        },
    )
    if row is None:
        return None
    cost = claim.cost_ms.get(DeliveryKind(row["kind"]), 0)
    if cost:
        work.run(sql.BUDGET, {"chat_id": row["chat_id"], "cost": cost, "now": work.now})
    claimed = work.one(sql.CLAIMED, {"delivery": row["id"]})
    return None if claimed is None else delivery_from_row(claimed)


def mark_delivery(work: Work, outcome: Outcome) -> None:
    """Write down what became of a send; what is settled already stays as it is."""
    match outcome:
        case Sent():
            _sent(work, outcome)
        case Later():
            _later(work, outcome)
        case Unsure():
            values = {"delivery": outcome.id, "error": storable(outcome.error)}
            work.run(sql.UNSURE, values)
        case Dead():
            _dead(work, outcome)
        case _:
            assert_never(outcome)


def park_chat(work: Work, park: ParkChat) -> None:
    """Send nothing to a chat for a while."""
    chat = rows_of(work, park.place).chat
    work.run(sql.PARK_CHAT, {"chat_id": chat, "at": ms(park.until)})


def _note(work: Work, conversation: ConversationId, text: str) -> MessageId:
    values: dict[str, object] = {"conv": conversation, "body": storable(text), "now": work.now}
    values["seq"], values["session"] = work.one(sql.NOTED, values) or (0, 0)
    message = MessageId(work.next_message())
    values.update(message=message, added=1)
    work.run(sql.NOTE, values)
    work.run(turns_sql.LAST_MESSAGE, values)
    work.run(inbound_sql.COUNT, values)
    work.run(inbound_sql.EVENT, values)
    work.wrote_event = True
    return message


def _sent(work: Work, sent: Sent) -> None:
    values: dict[str, object] = {
        "delivery": sent.id,
        "native_id": storable(sent.receipt.native_id),
        "marks": _marks(work, sent.id, sent.receipt.marks),
        "now": work.now,
    }
    work.run(sql.SENT, values)


def _later(work: Work, later: Later) -> None:
    values: dict[str, object] = {
        "delivery": later.id,
        "at": ms(later.at),
        "error": storable(later.error),
        "marks": _marks(work, later.id, later.marks),
    }
    if work.one(sql.UNWANTED, values) is not None:
        # It is to be taken away as soon as it is there.
        _dead(work, Dead(id=later.id, error="superseded"))
        took_effect = 1
    else:
        # A newer edit of the same message says all that this one would have said.
        took_effect = work.run(sql.SUPERSEDED, values) or work.run(sql.LATER, values)
    if took_effect and later.park_chat:
        work.run(sql.PARK, values)


def _dead(work: Work, dead: Dead) -> None:
    values: dict[str, object] = {"delivery": dead.id, "error": storable(dead.error)}
    row = work.one(sql.DEAD, values)
    if row is None:
        return
    work.run(sql.DEAD_EDITS, values)
    if row["question_id"] is None or row["kind"] not in _OF_QUESTIONS:
        return
    reason = _OF_QUESTIONS[row["kind"]]
    # Without its arguments the card that follows may not offer to run them.
    work.run(sql.DEAD_CARD, {**values, "group_key": row["group_key"], "part": row["part"]})
    cancel_unshown(work, QuestionId(row["question_id"]), reason=reason)


def _marks(work: Work, delivery: DeliveryId, more: frozenset[Mark]) -> str:
    row = work.one(sql.MARKS, {"delivery": delivery})
    return marks_to_text(more if row is None else more | marks_from_text(row["marks"]))
