"""Conversations, their sessions and their messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.domain.conversation import (
    ConversationPage,
    ConversationView,
    Role,
    SessionView,
    Spent,
    StoredMessage,
)
from gateway.domain.ids import ConversationId, MessageId, SessionId
from gateway.domain.message import Attachment
from store.codec import (
    RowLike,
    actor_from_text,
    clean,
    from_ms,
    from_ms_or_none,
    place_from_row,
    readable,
    storable,
)
from store.readers.database import Database, Read
from store.readers.decoding import decode_each, decode_one
from store.readers.files import by_message
from store.sql.reads import conversations as sql
from store.sql.reads import files as files_sql

NO_BOUND: Final = 2**63 - 1
_NO_ATTACHMENTS: Final[Mapping[int, tuple[Attachment, ...]]] = {}


class ConversationReader:
    """Implements `gateway.ports.Conversations`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        *,
        platform: str | None = None,
        search: str | None = None,
        before: str | None = None,
        limit: int,
    ) -> ConversationPage:
        """Return conversations, newest first.

        Raises:
            ValueError: `before` is no `next` of an earlier page.
        """
        at, identifier = (NO_BOUND, NO_BOUND) if before is None else _bound(before)
        statement = sql.CONVERSATIONS + sql.AND_BEFORE
        if platform is not None:
            statement += sql.AND_PLATFORM
        if search:
            statement += sql.AND_SEARCH
        rows = await self._database.all(
            statement + sql.NEWEST,
            platform=platform,
            search=(search or "").casefold(),
            at=at,
            id=identifier,
            limit=limit + 1,
        )
        found = decode_each(rows[:limit], _conversation_from_row, what="conversation")
        more = len(rows) > limit > 0
        last = rows[limit - 1] if more else None
        return ConversationPage(
            conversations=found, next=None if last is None else f"{last['last_at']}.{last['id']}"
        )

    async def find(self, session_key: str) -> ConversationView | None:
        """Return a conversation by its key, also by one from before its chat migrated."""
        row = await self._database.first(
            sql.CONVERSATIONS + sql.AND_KEY, session_key=storable(session_key)
        )
        return None if row is None else decode_one(row, _conversation_from_row, what="conversation")

    async def sessions(self, conversation: ConversationId, *, limit: int) -> Sequence[SessionView]:
        """Return the sessions of a conversation, newest first."""
        rows = await self._database.all(sql.SESSIONS, conversation=conversation, limit=limit)
        return decode_each(rows, _session_from_row, what="session")

    async def session(self, session: SessionId) -> SessionView | None:
        """Return one session."""
        row = await self._database.first(sql.SESSION, session=session)
        return None if row is None else decode_one(row, _session_from_row, what="session")

    async def numbered(self, conversation: ConversationId, n: int) -> SessionView | None:
        """Return the session of that number in a conversation."""
        row = await self._database.first(sql.SESSION_NUMBERED, conversation=conversation, n=n)
        return None if row is None else decode_one(row, _session_from_row, what="session")

    async def spent(self, conversation: ConversationId) -> Spent:
        """Return what all sessions of a conversation took."""
        row = await self._database.first(sql.SPENT, conversation=conversation)
        if row is None:
            return Spent(sessions=0, input_tokens=0, output_tokens=0)
        return Spent(
            sessions=row["sessions"],
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
        )

    async def session_of(
        self, conversation: ConversationId, message: MessageId
    ) -> SessionView | None:
        """Return the session of a message, also of one that was deleted since."""
        row = await self._database.first(sql.SESSION_OF, conversation=conversation, message=message)
        return None if row is None else decode_one(row, _session_from_row, what="session")

    async def message(
        self, conversation: ConversationId, message: MessageId
    ) -> StoredMessage | None:
        """Return one readable message with its attachments."""
        async with self._database.snapshot() as read:
            rows = await read.all(sql.MESSAGE, conversation=conversation, message=message)
            found = await _with_attachments(read, rows)
        return found[0] if found else None

    async def messages(
        self,
        session: SessionId,
        *,
        before: MessageId | None = None,
        after: MessageId | None = None,
        limit: int,
    ) -> Sequence[StoredMessage]:
        """Return readable messages, chronological.

        The newest `limit`; with `before` the last ones ahead of it; with `after` the first ones
        behind it, up to `before` when both are given.
        """
        end = NO_BOUND if before is None else before
        async with self._database.snapshot() as read:
            if after is None:
                rows = await read.all(sql.MESSAGES_BEFORE, session=session, before=end, limit=limit)
                rows = rows[::-1]
            else:
                rows = await read.all(
                    sql.MESSAGES_AFTER, session=session, after=after, before=end, limit=limit
                )
            return await _with_attachments(read, rows)

    async def history(self, session: SessionId, *, limit: int) -> Sequence[StoredMessage]:
        """Return what the model may see: the newest `limit`, behind the latest summary."""
        rows = await self._database.all(sql.HISTORY, session=session, limit=limit)
        if not any(row["attached"] for row in rows):
            return decode_each(_told(rows), _plain_message_from_row, what="message")
        async with self._database.snapshot() as read:
            rows = await read.all(sql.HISTORY, session=session, limit=limit)
            return await _with_attachments(read, _told(rows))


def _bound(before: str) -> tuple[int, int]:
    at, dot, identifier = before.partition(".")
    if not dot or not all(part.isascii() and part.isdigit() for part in (at, identifier)):
        raise ValueError(f"not a page of conversations: {before!r}")
    return min(int(at), NO_BOUND), min(int(identifier), NO_BOUND)


def _told(rows: Sequence[RowLike]) -> list[RowLike]:
    """Return the rows in the order in which the model is told them: its summary, then by age."""
    return sorted(rows, key=lambda row: (row["role"] != Role.SUMMARY, row["id"]))


async def _with_attachments(read: Read, rows: Sequence[RowLike]) -> tuple[StoredMessage, ...]:
    if not rows:
        return ()
    ids = json.dumps([row["id"] for row in rows])
    found = by_message(await read.all(files_sql.OF_MESSAGES, messages=ids))
    return decode_each(rows, lambda row: _message_from_row(row, found), what="message")


def _plain_message_from_row(row: RowLike) -> StoredMessage:
    return _message_from_row(row, _NO_ATTACHMENTS)


def _message_from_row(
    row: RowLike, attachments: Mapping[int, tuple[Attachment, ...]]
) -> StoredMessage:
    text, degraded = readable(row["body"])
    return StoredMessage(
        id=MessageId(row["id"]),
        session=SessionId(row["session_id"]),
        role=Role(row["role"]),
        author=actor_from_text(row["author"], name=row["author_name"]),
        text=text,
        at=from_ms(row["created_at"]),
        attachments=attachments.get(row["id"], ()),
        degraded=degraded,
    )


def _session_from_row(row: RowLike) -> SessionView:
    return SessionView(
        id=SessionId(row["id"]),
        n=row["n"],
        title=clean(row["title"]),
        message_count=row["message_count"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        started_at=from_ms(row["started_at"]),
        ended_at=from_ms_or_none(row["ended_at"]),
        model=clean(row["model"]),
    )


def _conversation_from_row(row: RowLike) -> ConversationView:
    return ConversationView(
        id=ConversationId(row["id"]),
        session_key=clean(row["session_key"]),
        session=SessionId(row["current_session_id"]),
        place=place_from_row(row),
        display_name=clean(row["display_name"]),
        chat_name=clean(row["chat_name"] or ""),
        user_name=clean(row["user_name"]),
        created_at=from_ms(row["created_at"]),
        updated_at=from_ms(row["last_at"]),
        message_count=row["message_count"] or 0,
        input_tokens=row["input_tokens"] or 0,
        output_tokens=row["output_tokens"] or 0,
        last_message=_last_message_from_row(row),
    )


def _last_message_from_row(row: RowLike) -> StoredMessage | None:
    if row["message_id"] is None:
        return None
    text, degraded = readable(row["body"])
    return StoredMessage(
        id=MessageId(row["message_id"]),
        session=SessionId(row["message_session_id"]),
        role=Role(row["role"]),
        author=actor_from_text(row["author"], name=row["author_name"]),
        text=text,
        at=from_ms(row["message_at"]),
        degraded=degraded,
    )
