"""Telegram's ids: which chat and topic a place is, and which counter a message id comes from.

The only place that reads one of our own native ids back.
"""

from dataclasses import dataclass
from typing import Final

from gateway.domain.ids import ChatType, Place

PLATFORM: Final = "telegram"

GENERAL_TOPIC: Final = "1"
"""A forum's own topic; Telegram refuses a send that names it."""

SHARED_COUNTER: Final = ""
"""Private chats and basic groups of one bot take their message ids from one counter."""

_BROAD_PREFIX: Final = "-100"
_SEPARATOR: Final = "+"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentIds:
    """What one delivery put into a chat: its message, and the prompt that opens the reply field."""

    message: int
    prompt: int | None = None

    def __str__(self) -> str:
        return str(self.message) if self.prompt is None else f"{self.message}+{self.prompt}"

    @classmethod
    def parse(cls, native_id: str) -> "SentIds | None":
        """Read a native id back; None when it is not one of ours."""
        message, _, prompt = native_id.partition(_SEPARATOR)
        if not message.isdecimal() or (prompt and not prompt.isdecimal()):
            return None
        return cls(message=int(message), prompt=int(prompt) if prompt else None)

    @property
    def all(self) -> tuple[int, ...]:
        """Both ids, as far as there are two."""
        return (self.message,) if self.prompt is None else (self.message, self.prompt)


def chat_id(place: Place) -> int | str:
    """Return what the Bot API calls the chat of a place; a public `@name` stays one."""
    text = place.chat
    return int(text) if text.removeprefix("-").isdecimal() else text


def thread_id(place: Place) -> int | None:
    """Return the topic a send must name, None for a plain chat and for a forum's General."""
    if place.chat_type is not ChatType.TOPIC or place.thread == GENERAL_TOPIC:
        return None
    return int(place.thread)


def counter_of(chat: str) -> str:
    """Return the counter a chat's message ids come from: its own id, or the shared one."""
    return chat if chat.startswith((_BROAD_PREFIX, "@")) else SHARED_COUNTER


def is_private(chat: str) -> bool:
    """Whether it is a chat with one person."""
    return chat.isdecimal()
