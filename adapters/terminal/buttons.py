"""The open card: its buttons as numbered lines, and what a typed line means for it. Pure."""

import json
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from gateway.domain.question import Action, Button
from gateway.ports import CardView

NUMBERED: Final = frozenset(
    {
        Action.PICK,
        Action.TOGGLE,
        Action.ALLOW_ONCE,
        Action.ALLOW_SESSION,
        Action.ALLOW_ALWAYS,
        Action.DENY,
        Action.SUBMIT,
        Action.EDIT,
    }
)
"""With any of these, numbers choose a button; a card that only takes typed text has none."""

ESCAPE: Final = "\\"
"""A line that starts with it is taken as text, without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCard:
    """A card that waits for an answer; `reply_token` carries a typed one for `field`."""

    question: str
    buttons: tuple[Button, ...]
    field: str
    reply_token: str

    @property
    def numbered(self) -> bool:
        """Whether its buttons are chosen by number (else by their label alone)."""
        return any(button.action in NUMBERED for button in self.buttons)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(button.label for button in self.buttons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    token: str
    field: str
    values: str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotUnderstood:
    """The line answers nothing; `hint` says what would."""

    hint: str


Answer: TypeAlias = Press | Typed | NotUnderstood


def payload_of(view: CardView) -> str:
    """Return the JSON a delivery carries, so that the card can be shown again after a restart."""
    buttons = [
        {"token": item.token, "action": item.action.value, "label": item.label}
        for item in view.buttons
    ]
    return json.dumps(
        {
            "question": view.question,
            "buttons": buttons,
            "field": view.field,
            "reply_token": view.reply_token,
        }
    )


def open_card(payload: str) -> OpenCard | None:
    """Read a delivery's payload back; None when it belongs to no card."""
    data = cast("dict[str, object]", json.loads(payload))
    if "question" not in data:
        return None
    buttons = tuple(
        Button(token=item["token"], action=Action(item["action"]), label=item["label"])
        for item in cast("list[dict[str, str]]", data["buttons"])
    )
    return OpenCard(
        question=str(data["question"]),
        buttons=buttons,
        field=str(data["field"]),
        reply_token=str(data["reply_token"]),
    )


def answer_of(line: str, card: OpenCard) -> Answer:
    """Say what a line means for the open card: a number, a label, or typed text."""
    text = line.strip()
    if text.startswith(ESCAPE) and card.reply_token:
        return _typed(text[len(ESCAPE) :], card)
    for button in card.buttons:
        if button.label.casefold() == text.casefold():
            return Press(token=button.token)
    if card.numbered:
        return _numbered(text, card)
    if card.reply_token:
        return _typed(text, card)
    return NotUnderstood(hint="Answer with one of: " + ", ".join(card.labels) + ".")


def _numbered(text: str, card: OpenCard) -> Answer:
    if text.isdecimal() and 1 <= int(text) <= len(card.buttons):
        return Press(token=card.buttons[int(text) - 1].token)
    if card.reply_token and text:
        return _typed(text, card)
    return NotUnderstood(hint=f"Answer with a number from 1 to {len(card.buttons)}, or a label.")


def _typed(text: str, card: OpenCard) -> Answer:
    return Typed(token=card.reply_token, field=card.field, values=text)
