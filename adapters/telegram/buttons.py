"""Buttons under a card: rows of labels, and data that means nothing without its row. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.domain.question import Action, Button
from gateway.domain.text import shorten, show_escapes

PREFIX: Final = "v1:"
ROW_UNITS: Final = 34
"""Characters of the labels in one row; more would be cut on a phone."""
ROW_BUTTONS: Final = 3
MAX_LABEL: Final = 64
MAX_BUTTONS: Final = 100
"""Telegram takes no more under one message."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_STYLES: Final[Mapping[Action, str]] = {
    Action.ALLOW_ONCE: "success",
    Action.SUBMIT: "primary",
    Action.DENY: "danger",
}
_ALONE: Final = frozenset({Action.PICK, Action.TOGGLE, Action.SHOW_FULL})
"""Options are read one below the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One button as it is sent."""

    label: str
    data: str
    style: str = ""


def data_of(token: str) -> str:
    """Return what Telegram carries for a button: 25 bytes of at most 64."""
    return PREFIX + token


def token_in(data: str) -> str:
    """Return the token of pressed data, "" for data we never make."""
    token = data.removeprefix(PREFIX)
    return token if data.startswith(PREFIX) and _TOKEN.fullmatch(token) else ""


def rows_of(buttons: Sequence[Button]) -> tuple[tuple[Key, ...], ...]:
    """Lay buttons out in rows, in their order."""
    rows: list[list[Key]] = []
    width = 0
    before: Action | None = None
    for button in buttons[:MAX_BUTTONS]:
        key = _key(button)
        alone = button.action in _ALONE and len(key.label) > 3
        full = not rows or len(rows[-1]) >= ROW_BUTTONS or width + len(key.label) > ROW_UNITS
        if full or alone or (before in _ALONE and button.action not in _ALONE):
            rows.append([])
            width = 0
        rows[-1].append(key)
        width += len(key.label)
        before = button.action
    return tuple(tuple(row) for row in rows)


def rows_to_json(rows: Iterable[Iterable[Key]]) -> list[list[dict[str, str]]]:
    """Return rows as a delivery carries them."""
    return [
        [{"label": key.label, "data": key.data, "style": key.style} for key in row] for row in rows
    ]


def rows_from_json(raw: Sequence[Sequence[Mapping[str, str]]]) -> tuple[tuple[Key, ...], ...]:
    """Read rows back."""
    return tuple(
        tuple(Key(label=key["label"], data=key["data"], style=key["style"]) for key in row)
        for row in raw
    )


def _key(button: Button) -> Key:
    label = " ".join(show_escapes(button.label).split())
    return Key(
        label=shorten(label, MAX_LABEL) or "?",
        data=data_of(button.token),
        style=_STYLES.get(button.action, ""),
    )
