"""The event stream by cursor, and waiting for more of it."""

import asyncio
from typing import Final

from gateway.domain.events import (
    EventPage,
    Fact,
    Gap,
    MessageStored,
    QuestionAsked,
    QuestionSettled,
    StoredEvent,
)
from gateway.domain.ids import Cursor, MessageId, QuestionId
from gateway.domain.question import QuestionKind, QuestionState, Surface
from store.codec import (
    RowLike,
    action_or_withdraw,
    actor_from_text,
    actor_or_none,
    clean,
    from_ms,
)
from store.readers.database import Database, Read
from store.readers.decoding import decode_each
from store.sql.reads import events as sql

EPOCH_BITS: Final = 40
"""A restore continues the ids at `epoch << 40` (schema.sql)."""


class Bell:
    """Wakes everyone who waits; each looks again for itself, so a ring carries nothing."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake all current waiters; from the event loop's thread."""
        self._rung.set()
        self._rung = asyncio.Event()

    def listen(self) -> asyncio.Event:
        """Return what the next ring sets; take it before looking, then no ring is missed."""
        return self._rung


class Events:
    """Implements `gateway.ports.EventReader`."""

    def __init__(self, database: Database, bell: Bell) -> None:
        self._database = database
        self._bell = bell

    async def head(self) -> Cursor:
        """Return the newest cursor; never 0, the store is born with a row."""
        row = await self._database.first(sql.EVENT_HEAD)
        return Cursor((row["head"] if row else None) or 1)

    async def after(
        self, cursor: Cursor, *, session_key: str | None = None, limit: int
    ) -> EventPage:
        """Return the events behind `cursor`; `next` is the last one's cursor, or the head."""
        async with self._database.snapshot() as read:
            head, gap = await _examine(read, cursor)
            start = cursor if gap is None else gap.next
            rows = await _rows(read, start, session_key=session_key, limit=limit)
        events = decode_each(rows, _event_from_row, what="event")
        # A full page goes on behind its last row, also when that row could not be read.
        following = rows[-1]["id"] if rows else max(head, start)
        return EventPage(events=events, next=Cursor(following), gap=gap)

    async def wait(self, cursor: Cursor, *, session_key: str | None = None) -> None:
        """Return when `after` has an event or a gap to tell."""
        while True:
            rung = self._bell.listen()
            if await self._has_more(cursor, session_key=session_key):
                return
            await rung.wait()

    async def _has_more(self, cursor: Cursor, *, session_key: str | None) -> bool:
        if session_key is None:
            row = await self._database.first(sql.EVENT_BEHIND, cursor=cursor)
        else:
            row = await self._database.first(
                sql.EVENT_BEHIND_OF, cursor=cursor, session_key=session_key
            )
        head, pruned_to = _bounds(row)
        if cursor > head or cursor < pruned_to or (row is not None and row["more"]):
            return True
        if _next_range(cursor) > head:
            return False
        async with self._database.snapshot() as read:
            return (await _examine(read, cursor))[1] is not None


def _bounds(row: RowLike | None) -> tuple[int, int]:
    """Return the newest cursor, and the one up to which history is gone."""
    if row is None:
        return 1, 0
    return int(row["head"] or 1), int(row["pruned_to"] or 0)


def _next_range(cursor: Cursor) -> int:
    """Return where the ids begin that a restore after `cursor` would give."""
    return ((cursor >> EPOCH_BITS) + 1) << EPOCH_BITS


async def _examine(read: Read, cursor: Cursor) -> tuple[int, Gap | None]:
    """Return the head, and what lies between `cursor` and the nearest one that can be read from."""
    head, pruned_to = _bounds(await read.first(sql.EVENT_BOUNDS))
    if cursor > head:
        return head, Gap(after=cursor, next=Cursor(head), reason="reset")
    if cursor < pruned_to:
        return head, Gap(after=cursor, next=Cursor(pruned_to), reason="pruned")
    restored_at = _next_range(cursor)
    if restored_at > head:
        return head, None
    edge = await read.first(sql.EVENT_EDGE, start=restored_at)
    if edge is None or (edge["last_before"] or 0) >= cursor:
        return head, None
    return head, Gap(after=cursor, next=Cursor(edge["first"]), reason="reset")


async def _rows(read: Read, start: Cursor, *, session_key: str | None, limit: int):
    if session_key is None:
        return await read.all(sql.EVENTS, cursor=start, limit=limit)
    conversation = await _conversation(read, session_key)
    if conversation is None:
        return ()
    return await read.all(sql.EVENTS_OF, cursor=start, conversation=conversation, limit=limit)


async def _conversation(read: Read, session_key: str) -> int | None:
    row = await read.first(sql.CONVERSATION_ID, session_key=session_key)
    return None if row is None else row["id"]


def _event_from_row(row: RowLike) -> StoredEvent:
    return StoredEvent(
        cursor=Cursor(row["id"]),
        session_key=clean(row["session_key"]),
        at=from_ms(row["at"]),
        fact=_fact_from_row(row),
    )


def _fact_from_row(row: RowLike) -> Fact:
    match row["kind"]:
        case "message":
            return MessageStored(
                message=MessageId(row["message_id"]),
                role=row["role"],
                author=actor_from_text(row["author"], name=row["author_name"]),
                text=clean(row["body"]),
                attachments=row["attachments"],
            )
        case "approval_requested":
            return QuestionAsked(
                question=QuestionId(clean(row["question_id"])),
                kind=QuestionKind(row["question_kind"]),
                server=clean(row["server"]),
                tool=clean(row["tool"]),
                requester=actor_from_text(row["requester"]),
                expires_at=from_ms(row["expires_at"]),
            )
        case "approval_resolved":
            return QuestionSettled(
                question=QuestionId(clean(row["question_id"])),
                kind=QuestionKind(row["question_kind"]),
                state=QuestionState(row["state"]),
                action=action_or_withdraw(row["decision"]),
                by=actor_or_none(row["decided_by"]),
                via=Surface(row["decided_via"] or Surface.SYSTEM),
            )
        case other:
            raise ValueError(f"unknown kind of event: {other}")
