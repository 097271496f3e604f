"""Conversations, sessions and messages as they are read back."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.ids import Actor, ConversationId, MessageId, Place, SessionId
from gateway.domain.message import Attachment


class Role(StrEnum):
    """`NOTE`: posted by send, bridge or a job. `SUMMARY`: stands for compacted history."""

    USER = "user"
    ASSISTANT = "assistant"
    NOTE = "note"
    SUMMARY = "summary"


class Activity(StrEnum):
    """`BUSY`: work goes on or something is still to be shown. `ASKING`: a shown question waits."""

    BUSY = "busy"
    ASKING = "asking"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message as its row holds it; `degraded` when its text could not be decoded whole."""

    id: MessageId
    session: SessionId
    role: Role
    author: Actor
    text: str
    at: datetime
    attachments: tuple[Attachment, ...] = ()
    degraded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """A conversation with its current session, for lists and look-ups."""

    id: ConversationId
    session_key: str
    session: SessionId
    place: Place
    display_name: str
    chat_name: str
    user_name: str
    created_at: datetime
    updated_at: datetime
    message_count: int
    input_tokens: int
    output_tokens: int
    last_message: StoredMessage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPage:
    """Newest first; `next` is the opaque `before` of the following page, None at the end."""

    conversations: tuple[ConversationView, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """One stretch of model memory; `n` counts from 1 in its conversation.

    `model` is the one that was chosen for it, "" for none.
    """

    id: SessionId
    n: int
    title: str
    message_count: int
    input_tokens: int
    output_tokens: int
    started_at: datetime
    ended_at: datetime | None
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What all sessions of a conversation took, in tokens."""

    sessions: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A place we may send to; `target` is what `send` takes."""

    target: str
    platform: str
    name: str
    chat_type: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    """A target that names more than one channel."""

    candidates: tuple[str, ...]
