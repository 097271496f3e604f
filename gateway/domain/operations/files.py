"""Recording what became of the files of messages."""

from dataclasses import dataclass

from gateway.domain.files import FileState
from gateway.domain.ids import AttachmentId, MessageId, Place
from gateway.domain.message import Attachment
from gateway.domain.operations.deliveries import Enqueue


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFile:
    """A file of an accepted message that is not here yet."""

    file: Attachment
    message: MessageId
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleFile:
    """Write down that a pending file is here, or why it never will be.

    `key`, `size` and `sha256` say where and what it is; `problem` is the sentence why it is not
    here. `notice` tells the chat, in the same transaction.
    """

    file: AttachmentId
    state: FileState
    key: str = ""
    size: int | None = None
    sha256: str = ""
    problem: str = ""
    notice: Enqueue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Bytes that files take: those of one conversation, and all."""

    conversation: int
    everything: int
