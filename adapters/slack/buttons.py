"""Buttons under a card: labels, and values that mean nothing without their row. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.domain.question import Action, Button
from gateway.domain.text import shorten, show_escapes

PREFIX: Final = "v1:"
OPENS_FORM: Final = "form:"
"""Begins the name of the button that opens a modal."""
MAX_LABEL: Final = 75
MAX_BUTTONS: Final = 25
"""Slack takes no more in one block; it breaks rows by itself."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_STYLES: Final[Mapping[Action, str]] = {
    Action.ALLOW_ONCE: "primary",
    Action.SUBMIT: "primary",
    Action.DENY: "danger",
}


def value_of(token: str) -> str:
    """Return what Slack carries for a button: 25 characters of at most 2000."""
    return PREFIX + token


def token_in(value: str) -> str:
    """Return the token of a pressed value, "" for one we never make."""
    token = value.removeprefix(PREFIX)
    return token if value.startswith(PREFIX) and _TOKEN.fullmatch(token) else ""


def label_of(button: Button) -> str:
    """Return a label on one visible line."""
    return " ".join(show_escapes(button.label).split()) or "?"


def too_long(buttons: Sequence[Button]) -> dict[str, tuple[int, str]]:
    """Return the labels that no button holds, by token: their number, and all of their text."""
    long = [button for button in buttons if len(label_of(button)) > MAX_LABEL]
    return {button.token: (n, label_of(button)) for n, button in enumerate(long, 1)}


def actions_of(buttons: Sequence[Button], *, form: bool) -> list[dict[str, Any]]:
    """Lay buttons out, in their order; `form`: the answering one opens a modal.

    One whose label is too long shows its number; the whole label stands in the card.
    """
    numbers = too_long(buttons)
    elements = [_element(button, numbers, form=form) for button in buttons]
    return [
        {"type": "actions", "elements": elements[start : start + MAX_BUTTONS]}
        for start in range(0, len(elements), MAX_BUTTONS)
    ]


def _element(
    button: Button, numbers: Mapping[str, tuple[int, str]], *, form: bool
) -> dict[str, Any]:
    label = label_of(button)
    if button.token in numbers:
        number, whole = numbers[button.token]
        label = shorten(f"{number}. {whole}", MAX_LABEL)
    opens = form and button.action is Action.ANSWER
    element: dict[str, Any] = {
        "type": "button",
        "text": {"type": "plain_text", "text": label, "emoji": False},
        "action_id": (OPENS_FORM if opens else PREFIX) + button.token,
        "value": value_of(button.token),
    }
    if style := _STYLES.get(button.action):
        element["style"] = style
    return element
