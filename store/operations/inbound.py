"""Accepting what a platform delivered: once, with its message, before it is acknowledged."""

import logging
from dataclasses import replace
from typing import assert_never

from gateway.domain.ids import Cursor, InboundId, MessageId, SessionId
from gateway.domain.message import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    InboundEvent,
    InboundMessage,
    MessageDeleted,
    MessageEdited,
)
from gateway.domain.operations.inbound import Accept, Accepted, Duplicate, Lane
from store.codec import event_from_json, event_kind, event_to_json, ms, storable
from store.operations.announcing import announce
from store.operations.places import current_session, open_session, resume_session, rows_of
from store.sql import inbound as sql
from store.work import Known, Work

logger = logging.getLogger(__name__)


def accept(work: Work, accept: Accept) -> Accepted | Duplicate:
    """Store an event once; a message also becomes a row of the conversation and of the stream.

    An edit or a deletion takes effect here and is done with.
    """
    event = accept.event
    known = rows_of(work, event.place, sender=event.sender)
    values: dict[str, object] = {
        "dedupe": storable(event.dedupe),
        "conv": known.conversation,
        "lane": accept.lane.value,
        "actor": storable(str(event.sender)),
        "payload": event_to_json(event),
        "sent_at": ms(event.sent_at),
        "now": work.now,
        "ready": _ready_at(work, accept),
    }
    result = (
        _message(work, accept, event, known, values)
        if isinstance(event, InboundMessage)
        else _other(work, accept, event, known, values)
    )
    if accept.position is not None:
        _position(work, event, accept.position)
    return result


def _ready_at(work: Work, accept: Accept) -> int:
    return work.now if accept.not_before is None else max(work.now, ms(accept.not_before))


def finish(work: Work, inbound: InboundId | None) -> None:
    """Mark an event as worked off; None is nothing to mark."""
    if inbound is not None:
        work.run(sql.FINISH, {"inbound": inbound})


def _message(
    work: Work, accept: Accept, event: InboundMessage, known: Known, values: dict[str, object]
) -> Accepted | Duplicate:
    message = MessageId(work.next_message())
    values["message"] = message
    inbound = InboundId(work.insert(sql.MESSAGE_INBOUND, values))
    if not inbound:
        return Duplicate(dedupe=event.dedupe)
    if accept.new_session:
        open_session(work, known.conversation)
    values["turn"] = accept.lane is Lane.TURN
    values["seq"], values["session"] = work.one(sql.NEXT, values) or (0, 0)
    work.run(sql.CONVERSATION, values)
    values["name"] = storable(event.sender.name)
    values["body"] = storable(event.text)
    values["native_id"] = storable(event.native_id) or None
    values["reply_to"] = None if event.reply_to is None else storable(event.reply_to)
    if not work.run(sql.MESSAGE, values):
        return _known_message(work, event, known, values)
    if event.attachments:
        announce(work, message, event.attachments)
    values["added"] = 1
    work.run(sql.COUNT, values)
    cursor = Cursor(work.insert(sql.EVENT, values))
    work.wrote_event = True
    return Accepted(
        inbound=inbound, conversation=known.conversation, message=message, cursor=cursor
    )


def _known_message(
    work: Work, event: InboundMessage, known: Known, values: dict[str, object]
) -> Duplicate:
    """Keep only the memory of another delivery of a message the conversation has."""
    work.undo()
    # The undone work may have made the place's rows.
    values["conv"] = rows_of(work, event.place, sender=event.sender).conversation
    row = work.one(sql.BY_NATIVE, values)
    values.update(kind="message", state="dropped", message=None if row is None else row["id"])
    work.run(sql.INBOUND, values)
    logger.info("a message of conversation %d came again under another key", known.conversation)
    return Duplicate(dedupe=event.dedupe)


def _other(
    work: Work, accept: Accept, event: InboundEvent, known: Known, values: dict[str, object]
) -> Accepted | Duplicate:
    applied = isinstance(event, MessageEdited | MessageDeleted)
    if isinstance(event, CommandGiven):
        session = SessionId(current_session(work, known.conversation))
        values["payload"] = event_to_json(replace(event, session=session))
    values.update(kind=event_kind(event), state="done" if applied else "new", message=None)
    inbound = InboundId(work.insert(sql.INBOUND, values))
    if not inbound:
        return Duplicate(dedupe=event.dedupe)
    if accept.new_session:
        open_session(work, known.conversation)
    if accept.resume is not None:
        resume_session(work, known.conversation, accept.resume)
    match event:
        case MessageEdited():
            _edit(work, event, known)
        case MessageDeleted():
            _delete(work, event, known)
        case CommandGiven() | ButtonPressed() | FormSubmitted():
            if accept.lane is Lane.TURN:
                work.run(sql.READY, values)
        case InboundMessage():
            raise TypeError("a message has its own way")
        case _:
            assert_never(event)
    return Accepted(inbound=inbound, conversation=known.conversation, message=None, cursor=None)


def _edit(work: Work, event: MessageEdited, known: Known) -> None:
    key = {"conv": known.conversation, "native_id": storable(event.edited)}
    row = work.one(sql.BY_NATIVE, key)
    if row is None or row["role"] != "user":
        return
    work.run(sql.EDIT, {"message": row["id"], "body": storable(event.text), "now": work.now})
    if row["inbound_id"] is None:
        return
    # Not taken yet: the turn must answer what the message says now.
    original = event_from_json("message", row["payload"])
    if isinstance(original, InboundMessage):
        payload = event_to_json(replace(original, text=event.text))
        work.run(sql.REPHRASE, {"inbound": row["inbound_id"], "payload": payload})


def _delete(work: Work, event: MessageDeleted, known: Known) -> None:
    key = {"conv": known.conversation, "native_id": storable(event.deleted)}
    row = work.one(sql.BY_NATIVE, key)
    if row is None or row["role"] != "user" or row["deleted_at"] is not None:
        return
    work.run(sql.DELETE, {"message": row["id"], "now": work.now})
    work.run(sql.COUNT, {"session": row["session_id"], "added": -1})
    if row["inbound_id"] is not None:
        work.run(sql.DROP, {"inbound": row["inbound_id"]})


def _position(work: Work, event: InboundEvent, position: tuple[str, str]) -> None:
    name, value = position
    work.run(
        sql.CURSOR,
        {
            "platform": storable(event.place.platform),
            "account": storable(event.place.account),
            "name": storable(name),
            "value": storable(value),
            "now": work.now,
        },
    )
