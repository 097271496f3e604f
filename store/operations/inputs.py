"""Which waiting inputs a turn answers: what it starts with, and what joins it while it runs."""

import json
import logging
from collections.abc import Iterable
from typing import Any, Final

from gateway.domain.canonical import canonical
from gateway.domain.errors import Conflict
from gateway.domain.ids import ConversationId, InboundId, MessageId, SessionId, TurnId
from gateway.domain.message import InboundMessage
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.turns import StepKind
from store.codec import RowLike, event_from_json, given_in
from store.sql import inbound as inbound_sql
from store.sql import turns as sql
from store.work import Work

logger = logging.getLogger(__name__)

MAX_INPUTS: Final = 10_000
"""Messages a turn takes at a time: more than any backlog, less than would hold the store up."""


def next_inputs(work: Work, conversation: RowLike) -> list[StoredInbound]:
    """Return the oldest input and the messages that continue it."""
    found: list[StoredInbound] = []
    for item in _waiting(work, conversation):
        if found and not _continues(found[0], item):
            break
        found.append(item)
    return found


def take(work: Work, turn: TurnId, inputs: Iterable[StoredInbound]) -> None:
    """Write down that a turn answers these."""
    for item in inputs:
        work.run(sql.TAKE, {"turn": turn, "inbound": item.id})


def taken_inputs(work: Work, turn: TurnId, conversation: RowLike) -> list[StoredInbound]:
    """Return what a turn answers, in order."""
    session = SessionId(conversation["current_session_id"])
    stored = work.all(sql.TAKEN, {"turn": turn})
    found = (_input(work, conversation, row, session) for row in stored)
    return [item for item in found if item is not None]


def join(work: Work, turn: TurnId, n: int) -> tuple[StoredInbound, ...]:
    """Take what continues the running turn, as its step `n`; without any there is no step.

    Raises:
        Conflict: The step is taken by something else.
    """
    conversation = work.one(sql.CONVERSATION, {"turn": turn})
    own = [] if conversation is None else taken_inputs(work, turn, conversation)
    step = work.one(sql.STEP, {"turn": turn, "n": n})
    if step is not None:
        if step["kind"] != StepKind.INPUT:
            raise Conflict(f"step {n} of turn {turn} is another one")
        before = joined_ids(step["result"])
        return tuple(item for item in own if item.id in before)
    if conversation is None or not own:
        return ()
    found: list[StoredInbound] = []
    for item in _waiting(work, conversation):
        if not _continues(own[0], item):
            break
        found.append(item)
    if found:
        take(work, turn, found)
        values = {
            "turn": turn,
            "n": n,
            "idem_key": f"{turn}:{n}",
            "result": canonical([item.id for item in found]),
            "now": work.now,
        }
        work.run(sql.JOINED, values)
    return tuple(found)


def joined_ids(result: str) -> tuple[InboundId, ...]:
    """Read the result of an input step."""
    ids: list[int] = json.loads(result)
    return tuple(InboundId(each) for each in ids)


def _waiting(work: Work, conversation: RowLike) -> Iterable[StoredInbound]:
    session = SessionId(conversation["current_session_id"])
    for row in work.all(sql.NEXT, {"conv": conversation["id"], "limit": MAX_INPUTS}):
        item = _input(work, conversation, row, session)
        if item is not None:
            yield item


def _continues(first: StoredInbound, item: StoredInbound) -> bool:
    """A message continues another of the same sender and session, unless one stands alone."""
    before, event = first.event, item.event
    return (
        isinstance(before, InboundMessage)
        and isinstance(event, InboundMessage)
        and not (before.alone or event.alone)
        and item.session == first.session
        and str(event.sender) == str(before.sender)
    )


def _input(
    work: Work, conversation: RowLike, row: RowLike, session: SessionId
) -> StoredInbound | None:
    try:
        event = event_from_json(row["kind"], row["payload"])
    except (ValueError, KeyError, TypeError):
        # Kept as it is for whoever looks; a turn cannot answer it.
        logger.warning("inbound %d cannot be read and is left out", row["id"])
        work.run(inbound_sql.DROP, {"inbound": row["id"]})
        return None
    message: Any = row["message_id"]
    known: Any = row["session_id"]
    return StoredInbound(
        id=InboundId(row["id"]),
        conversation=ConversationId(conversation["id"]),
        session=given_in(event, otherwise=session) if known is None else SessionId(known),
        event=event,
        message=None if message is None else MessageId(message),
    )
