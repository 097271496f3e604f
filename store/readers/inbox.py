"""What was accepted and is not worked off."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gateway.domain.conversation import Activity
from gateway.domain.ids import ConversationId, InboundId, MessageId, Place, SessionId, TurnId
from gateway.domain.message import InboundMessage
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.turns import Exchange, TurnEnd
from store.codec import (
    RowLike,
    clean,
    event_from_json,
    given_in,
    place_from_row,
    readable,
    storable,
)
from store.readers.database import Database
from store.readers.decoding import decode_each, decode_one
from store.sql.reads import inbox as sql

MAX_CONTROLS: Final = 500
"""Control events read at once; the rest follows when these are worked off."""


class InboxReader:
    """Implements `gateway.ports.Inbox`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def controls(self) -> Sequence[StoredInbound]:
        """Return control events that are not worked off, oldest first."""
        rows = await self._database.all(sql.CONTROLS, limit=MAX_CONTROLS)
        return decode_each(rows, inbound_from_row, what="inbound")

    async def find(self, inbound: InboundId) -> StoredInbound | None:
        """Return an accepted event; None also once retention blanked it."""
        row = await self._database.first(sql.INBOUND, inbound=inbound)
        return None if row is None else decode_one(row, inbound_from_row, what="inbound")

    async def waiting(self, place: Place) -> int:
        """Return how many inputs of the turn lane wait in a conversation."""
        row = await self._database.first(sql.WAITING, session_key=storable(place.session_key))
        return 0 if row is None else row["waiting"]

    async def activity(self, place: Place) -> Activity:
        """Return whether a conversation works, waits for an answer, or has nothing left to do."""
        row = await self._database.first(sql.ACTIVITY, session_key=storable(place.session_key))
        return Activity.SETTLED if row is None else Activity(row["activity"])

    async def threads(self, *, limit: int) -> Sequence[str]:
        """Return the session keys of threads in which a turn ran, newest first."""
        rows = await self._database.all(sql.THREADS, limit=limit)
        return [clean(row["session_key"]) for row in rows]

    async def last_heard(
        self, platform: str, account: str, *, limit: int
    ) -> Sequence[tuple[Place, str]]:
        """Return conversations, those of late first, with the id of what a person said last."""
        rows = await self._database.all(
            sql.LAST_HEARD, platform=storable(platform), account=storable(account), limit=limit
        )
        return decode_each(rows, _heard_from_row, what="conversation")

    async def last_turn(self, place: Place) -> tuple[TurnId, TurnEnd | None] | None:
        """Return the newest turn of a conversation and how it ended, None while it runs."""
        row = await self._database.first(sql.LAST_TURN, session_key=storable(place.session_key))
        if row is None:
            return None
        return TurnId(row["id"]), None if row["ended_at"] is None else TurnEnd(row["state"])

    async def exchange_before(self, turn: TurnId) -> Exchange | None:
        """Return the last exchange of a turn's session before it, as its messages read now."""
        async with self._database.snapshot() as read:
            found = await read.all(sql.EXCHANGE, turn=turn)
            rows = await read.all(sql.EXCHANGE_INPUTS, turn=found[0]["id"]) if found else ()
            inputs = decode_each(rows, _said_from_row, what="inbound")
            if not inputs:
                return None
            newest = max(row["message_id"] for row in rows)
            replies = await read.all(sql.EXCHANGE_REPLIES, session=inputs[0].session, after=newest)
        return Exchange(
            inputs=tuple(inputs), replies=tuple(MessageId(row["id"]) for row in replies)
        )


def _heard_from_row(row: RowLike) -> tuple[Place, str]:
    return place_from_row(row), clean(row["native_id"] or "")


def _said_from_row(row: RowLike) -> StoredInbound:
    """Read a row of `sql.EXCHANGE_INPUTS`: what was edited since it was answered says so."""
    stored = inbound_from_row(row)
    if row["edited"] is None or not isinstance(stored.event, InboundMessage):
        return stored
    text, _ = readable(row["edited"])
    return replace(stored, event=replace(stored.event, text=text))


def inbound_from_row(row: RowLike) -> StoredInbound:
    """Read a row of `sql.INBOUND`.

    Raises:
        ValueError, KeyError, TypeError: The payload is damaged or was blanked.
    """
    event = event_from_json(row["kind"], row["payload"])
    return StoredInbound(
        id=InboundId(row["id"]),
        conversation=ConversationId(row["conversation_id"]),
        session=given_in(event, otherwise=SessionId(row["session_id"])),
        message=None if row["message_id"] is None else MessageId(row["message_id"]),
        event=event,
    )
