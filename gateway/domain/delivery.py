"""What must be sent, one platform message each, and what became of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias

from gateway.domain.ids import DeliveryId, MessageId, Place
from gateway.domain.message import Attachment


class DeliveryKind(StrEnum):
    TEXT = "text"
    CARD = "card"
    FILE = "file"
    EDIT = "edit"


class Origin(StrEnum):
    """What caused a delivery."""

    TURN = "turn"
    QUESTION = "question"
    COMMAND = "command"
    SEND = "send"
    BRIDGE = "bridge"
    JOB = "job"
    NOTICE = "notice"


class Mark(StrEnum):
    """Said to the reader: it may be a repeat, it lost its markup, its topic, or it comes late."""

    REPEAT = "repeat"
    PLAIN = "plain"
    MOVED = "moved"
    LATE = "late"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One message of a reply or a request, rendered, before it has a row.

    `payload` is JSON text that only the platform's own renderer and adapter read. `files` are kept
    in the media folder and sent with it; a `FILE` without any carries its text as a file.
    """

    kind: DeliveryKind
    body: str
    payload: str = "{}"
    files: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message to send now; `key` is the same for every attempt, `edits` the native id to edit.

    `message` is the stored message it is a part of, None for what is no message (a card, a notice).
    `files` as for a part.
    """

    id: DeliveryId
    place: Place
    kind: DeliveryKind
    body: str
    payload: str
    key: str
    attempt: int
    edits: str | None = None
    marks: frozenset[Mark] = frozenset()
    origin: Origin = Origin.TURN
    message: MessageId | None = None
    files: tuple[Attachment, ...] = ()


_BETWEEN: Final = ","


def native_id_of(ids: Iterable[str]) -> str:
    """Return the native id of a delivery that became several messages."""
    return _BETWEEN.join(ids)


def ids_in(native_id: str) -> tuple[str, ...]:
    """Return the platform's id of each message of a delivery."""
    return tuple(native_id.split(_BETWEEN))


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The platform has it, under an id of its own, or several (`native_id_of`).

    Raises:
        ValueError: There is no id.
    """

    native_id: str
    marks: frozenset[Mark] = frozenset()

    def __post_init__(self) -> None:
        if not self.native_id:
            raise ValueError("what the platform has, has an id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    id: DeliveryId
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Refused for now; the whole chat waits when `park_chat`."""

    id: DeliveryId
    at: datetime
    error: str
    park_chat: bool
    marks: frozenset[Mark] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsure:
    """The call ended without an answer; it may have arrived."""

    id: DeliveryId
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """It will never be sent."""

    id: DeliveryId
    error: str


Outcome: TypeAlias = Sent | Later | Unsure | Dead


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatus:
    """A delivery as its row says, for those who wait for a platform id."""

    id: DeliveryId
    state: str
    native_id: str | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """A message of ours as it was sent, found by its platform id."""

    place: Place
    kind: DeliveryKind
    native_id: str
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownId:
    """A platform id that is accounted for, ours or a person's; `earlier`: before a send began."""

    chat: str
    native_id: str
    earlier: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """What is known around a send whose answer was lost; `unsettled` counts all such sends."""

    known: tuple[KnownId, ...]
    unsettled: int
