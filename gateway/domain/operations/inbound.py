"""Accepting what a platform delivered."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.ids import ConversationId, Cursor, InboundId, MessageId, SessionId
from gateway.domain.message import InboundEvent


class Lane(StrEnum):
    """`CONTROL` (presses, forms, most commands) never waits behind a running turn."""

    TURN = "turn"
    CONTROL = "control"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Store an event once. `new_session` opens a session here, so order decides what belongs to it.

    `resume` is the number of an earlier session that goes on here, likewise; a number there is
    none of changes nothing.
    `position`: name and value of the platform cursor that this event completes. `not_before`: its
    turn does not begin earlier, unless the conversation has other work.
    """

    event: InboundEvent
    lane: Lane
    new_session: bool = False
    resume: int | None = None
    position: tuple[str, str] | None = None
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """`message` and `cursor` are None for what is not a message."""

    inbound: InboundId
    conversation: ConversationId
    message: MessageId | None
    cursor: Cursor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """It was accepted before; nothing changed."""

    dedupe: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInbound:
    """An accepted event that still has to be worked off.

    `session` is the one its message belongs to or its command was given in; else the current one.
    `message` is the row it became, so that a turn tells its own inputs from later ones.
    """

    id: InboundId
    conversation: ConversationId
    session: SessionId
    event: InboundEvent
    message: MessageId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateChat:
    """A chat got another id on its platform (group to supergroup)."""

    platform: str
    account: str
    old: str
    new: str
