"""Identifiers. Platform ids are opaque text outside the adapter that minted them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, TypeAlias

ConversationId = NewType("ConversationId", int)
SessionId = NewType("SessionId", int)
InboundId = NewType("InboundId", int)
MessageId = NewType("MessageId", int)
AttachmentId = NewType("AttachmentId", int)
TurnId = NewType("TurnId", int)
DeliveryId = NewType("DeliveryId", int)
RuleId = NewType("RuleId", int)
PairingId = NewType("PairingId", int)
Cursor = NewType("Cursor", int)

QuestionId = NewType("QuestionId", str)
"""26 characters of lower-case base32; public (schema.sql, `question.id`)."""


class ChatType(StrEnum):
    """Where a conversation happens; `THREAD` and `TOPIC` are shared parts of a chat."""

    DM = "dm"
    GROUP = "group"
    CHANNEL = "channel"
    THREAD = "thread"
    TOPIC = "topic"


THREADED = frozenset({ChatType.THREAD, ChatType.TOPIC})


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who did something; `str()` is the form stored and shown to other agents.

    `is_chat`: somebody who speaks for a whole chat (an anonymous admin, a channel); nobody knows who.
    """

    platform: str
    id: str
    name: str = ""
    is_bot: bool = False
    is_chat: bool = False

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"

    @classmethod
    def parse(cls, text: str, *, name: str = "") -> "Actor":
        """Read the stored form back; text without a colon names a part of ours (`agent`)."""
        platform, _, identifier = text.partition(":")
        return cls(platform=platform, id=identifier, name=name)


Account: TypeAlias = tuple[str, str]
"""Platform, and the account on it by its name in the configuration, "" for the only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a conversation happens: a chat, a thread or topic in it, or one person's part of it.

    Raises:
        ValueError: No chat, or a thread id where the chat type has none (and the reverse):
            two conversations would share a key.
    """

    platform: str
    chat: str
    chat_type: ChatType
    account: str = ""
    thread: str = ""
    participant: str = ""

    def __post_init__(self) -> None:
        if not self.platform or not self.chat:
            raise ValueError("a place needs a platform and a chat")
        if bool(self.thread) != (self.chat_type in THREADED):
            raise ValueError(f"chat type {self.chat_type} and thread {self.thread!r} do not agree")

    @property
    def session_key(self) -> str:
        """`agent:main:<platform>:<chat_type>:<chat>[:<thread>][:<participant>]` (SPEC §3)."""
        platform = _part(self.platform)
        if self.account:
            platform = f"{platform}@{_part(self.account)}"
        parts = ["agent", "main", platform, self.chat_type.value, _part(self.chat)]
        parts += [_part(part) for part in (self.thread, self.participant) if part]
        return ":".join(parts)

    def shows_same_as(self, other: "Place") -> bool:
        """Whether two places show the same messages; people of one group share its cards."""
        return (self.platform, self.account, self.chat, self.thread) == (
            other.platform,
            other.account,
            other.chat,
            other.thread,
        )


def _part(text: str) -> str:
    return text.replace("%", "%25").replace(":", "%3A")
