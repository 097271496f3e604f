"""What is shown of a reply while it is made: silent, and gone once the reply itself is there."""

from dataclasses import dataclass
from typing import Final

from gateway.domain.delivery import Delivery, DeliveryKind, Part
from gateway.domain.ids import Place, TurnId

_KEY: Final = "preview:"

REMOVAL: Final = Part(kind=DeliveryKind.EDIT, body="")
"""The edit that takes a message away: it leaves nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A reply as far as its model has written it; `text` is Markdown, all of it so far.

    `turn` is the same for everything that is shown of one reply, also after a restart. `message` is
    the platform's id of the message that stands for it, None while there is none.
    """

    place: Place
    turn: TurnId
    text: str
    message: str | None = None


def preview_key(turn: TurnId) -> str:
    """Return the group key of the message that stands for a reply while it is made."""
    return f"{_KEY}{turn}"


def is_preview(delivery: Delivery) -> bool:
    """Whether a delivery is such a message, which nobody misses."""
    return delivery.key.startswith(_KEY)
