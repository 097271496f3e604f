"""Typed answers: the prompt that opens the reply field, and what a reply to it answers. Pure.

A message of Telegram's has buttons or opens the reply field, never both. So a card that takes
typed text keeps its buttons, and a short prompt follows it; a reply to either is an answer.
"""

from dataclasses import dataclass
from typing import Final

from adapters.telegram.ids import SentIds
from adapters.telegram.mentions import quieted
from gateway.domain.text import shorten, show_escapes
from gateway.ports import CardView

MAX_PLACEHOLDER: Final = 64
MAX_HINT: Final = 300
PROMPT_WITHIN: Final = 40
"""How many messages may have come between a card and its prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a card wants typed: the button row and the field it answers, and a word about it."""

    token: str
    field: str
    hint: str = ""

    @property
    def prompt(self) -> str:
        """The text of the message that opens the reply field."""
        return f"Your answer: {self.hint}" if self.hint else "Your answer:"

    @property
    def placeholder(self) -> str:
        """What the empty reply field says."""
        return shorten(self.hint, MAX_PLACEHOLDER)


def ask_of(view: CardView) -> Ask | None:
    """Return what a card wants typed, None when only its buttons answer it."""
    if not view.reply_token:
        return None
    hint = " ".join(show_escapes(view.reply_hint).split())
    return Ask(token=view.reply_token, field=view.field, hint=quieted(shorten(hint, MAX_HINT)))


def ids_of_card(replied: int) -> tuple[str, ...]:
    """Return how a card may be listed when a message is replied to: as itself, or by its prompt."""
    before = range(replied - 1, max(replied - 1 - PROMPT_WITHIN, 0), -1)
    return (str(replied), *(str(SentIds(message=card, prompt=replied)) for card in before))
