"""Telegram's ids: which chat and topic a place is, and which counter a message id comes from.

The only place that reads one of our own native ids back.
"""

from dataclasses import dataclass
from typing import Final

from gateway.domain.delivery import ids_in, native_id_of
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
    """What one delivery put into a chat: its message, and the prompt that opens the reply field.

    `more` are the further messages of an album.
    """

    message: int
    prompt: int | None = None
    more: tuple[int, ...] = ()

    def __str__(self) -> str:
        messages = native_id_of(str(each) for each in (self.message, *self.more))
        return messages if self.prompt is None else f"{messages}+{self.prompt}"

    @classmethod
    def parse(cls, native_id: str) -> "SentIds | None":
        """Read a native id back; None when it is not one of ours."""
        messages, _, prompt = native_id.partition(_SEPARATOR)
        first, *more = ids_in(messages)
        if not all(each.isdecimal() for each in (first, *more, prompt or "0")):
            return None
        return cls(
            message=int(first),
            prompt=int(prompt) if prompt else None,
            more=tuple(int(each) for each in more),
        )

    @property
    def all(self) -> tuple[int, ...]:
        """Every id."""
        prompt = () if self.prompt is None else (self.prompt,)
        return (self.message, *self.more, *prompt)


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
