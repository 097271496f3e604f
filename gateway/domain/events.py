"""The append-only stream that other programs follow."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from gateway.domain.ids import Actor, Cursor, MessageId, QuestionId
from gateway.domain.question import Action, QuestionKind, QuestionState, Surface


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStored:
    message: MessageId
    role: str
    author: Actor
    text: str
    attachments: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    question: QuestionId
    kind: QuestionKind
    server: str
    tool: str
    requester: Actor
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSettled:
    question: QuestionId
    kind: QuestionKind
    state: QuestionState
    action: Action
    by: Actor | None
    via: Surface


Fact: TypeAlias = MessageStored | QuestionAsked | QuestionSettled


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    cursor: Cursor
    session_key: str
    at: datetime
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Rows between the two cursors are gone (`pruned`), or never were (`reset`)."""

    after: Cursor
    next: Cursor
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    events: tuple[StoredEvent, ...]
    next: Cursor
    gap: Gap | None = None
