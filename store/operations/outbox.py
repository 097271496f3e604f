"""Rows of the outbox, for every operation that makes something to be sent."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.delivery import Part
from gateway.domain.ids import ConversationId, DeliveryId, MessageId, QuestionId, TurnId
from gateway.domain.preview import REMOVAL, preview_key
from store.codec import storable
from store.operations.announcing import attach
from store.sql import deliveries as sql
from store.sql import places as places_sql
from store.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """What deliveries belong to; `chat` is the row of the chat they go to."""

    conversation: ConversationId
    chat: int
    turn: TurnId | None = None
    message: MessageId | None = None
    question: QuestionId | None = None


def next_ords(work: Work, conversation: ConversationId, *, parts: int) -> tuple[int, int]:
    """Reserve places in the conversation's order of sending; return the first and the chat's row."""
    row = work.one(places_sql.NEXT_ORD, {"conv": conversation, "parts": parts})
    if row is None:
        raise LookupError(f"conversation {conversation}")
    return row["last_ord"] - parts + 1, row["chat_id"]


def add_parts(
    work: Work,
    owner: Owner,
    parts: Sequence[Part],
    *,
    origin: str,
    group_key: str,
    first_ord: int,
) -> tuple[DeliveryId, ...]:
    """Put the parts of one reply or request into the outbox, in order."""
    added: list[DeliveryId] = []
    for index, part in enumerate(parts):
        values = {
            "conv": owner.conversation,
            "chat_id": owner.chat,
            "ord": first_ord + index,
            "kind": part.kind.value,
            "origin": origin,
            "turn": owner.turn,
            "message": owner.message,
            "question": owner.question,
            "group_key": group_key,
            "part": index,
            "idem_key": f"{group_key}:{index}",
            "body": storable(part.body),
            "payload": storable(part.payload),
            "now": work.now,
        }
        delivery = DeliveryId(work.value(sql.ADD, values))
        attach(work, delivery, owner.message, part.files)
        added.append(delivery)
    return tuple(added)


def add_edit(
    work: Work,
    target: DeliveryId | int | None,
    part: Part,
    *,
    origin: str,
    question: QuestionId | None = None,
    group_key: str = "",
) -> DeliveryId | None:
    """Edit what a delivery shows, once it is sent; a newer edit replaces an unsent one.

    None: there is nothing to edit, because it will never be sent.
    """
    row = None if target is None else work.one(sql.TARGET, {"delivery": target})
    if row is None or row["state"] == "dead":
        return None
    conversation = ConversationId(row["conversation_id"])
    order, chat = next_ords(work, conversation, parts=1)
    key = group_key or f"edit:{target}:{order}"
    values = {
        "conv": conversation,
        "chat_id": chat,
        "ord": order,
        "origin": origin,
        "question": question,
        "target": target,
        "group_key": key,
        "idem_key": f"{key}:0",
        "body": storable(part.body),
        "payload": storable(part.payload),
        "now": work.now,
    }
    return DeliveryId(work.value(sql.EDIT, values))


def take_preview_away(work: Work, turn: TurnId) -> None:
    """Remove what stands for a reply while it is made, after everything that is to be sent by now."""
    shown = work.one(sql.PREVIEW, {"group_key": preview_key(turn)})
    if shown is None or work.run(sql.UNSENT, {"delivery": shown["id"]}):
        return
    add_edit(work, shown["id"], REMOVAL, origin="turn")
