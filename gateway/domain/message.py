"""What arrives from a chat, and what travels with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from gateway.domain.files import FileState
from gateway.domain.ids import Actor, AttachmentId, Place, SessionId


class AttachmentKind(StrEnum):
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    VOICE = "voice"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file of a message; `ref` is what its adapter needs to fetch it. `id` once it has a row.

    `key` is where the media folder keeps it, while it is `STORED`; `problem` is one sentence on why
    it is not here.
    """

    kind: AttachmentKind
    media_type: str
    name: str = ""
    size: int | None = None
    ref: str | None = None
    id: AttachmentId | None = None
    state: FileState = FileState.PENDING
    key: str = ""
    problem: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage:
    """A platform message after normalisation, before it has a row in the store.

    `mentions_us`: it names us, answers a message of ours, or is for nobody else to read.
    `album`: messages that share it are one message of several files.
    `alone`: it gets a turn of its own, and nothing joins it. `toolsets`: the only ones its turn may
    use, none named is all.
    """

    place: Place
    native_id: str
    dedupe: str
    sender: Actor
    sent_at: datetime
    text: str
    attachments: tuple[Attachment, ...] = ()
    reply_to: str | None = None
    mentions_us: bool = False
    alone: bool = False
    toolsets: tuple[str, ...] = ()
    album: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEdited:
    """The sender changed a message; `edited` is its native id, `text` what it says now."""

    place: Place
    native_id: str
    dedupe: str
    sender: Actor
    sent_at: datetime
    edited: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDeleted:
    """The platform says that the message `deleted` is gone."""

    place: Place
    native_id: str
    dedupe: str
    sender: Actor
    sent_at: datetime
    deleted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandGiven:
    """A slash command: its name without the slash, `-` never written `_`, and the rest.

    `mentions_us` and `toolsets` as for a message. `session` is the one it was given in, known
    once it is stored.
    """

    place: Place
    native_id: str
    dedupe: str
    sender: Actor
    sent_at: datetime
    name: str
    argument: str = ""
    mentions_us: bool = False
    toolsets: tuple[str, ...] = ()
    session: SessionId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonPressed:
    """Someone pressed a button of ours; the token means what its row says.

    `interaction` is the adapter's handle for an answer within the platform's deadline.
    """

    place: Place
    native_id: str
    dedupe: str
    sender: Actor
    sent_at: datetime
    token: str
    interaction: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormSubmitted:
    """Someone answered fields of a form: a native form, or one field by a typed reply."""

    place: Place
    native_id: str
    dedupe: str
    sender: Actor
    sent_at: datetime
    token: str
    values: Mapping[str, str | Sequence[str]]
    interaction: str = ""


InboundEvent: TypeAlias = (
    InboundMessage | MessageEdited | MessageDeleted | CommandGiven | ButtonPressed | FormSubmitted
)
