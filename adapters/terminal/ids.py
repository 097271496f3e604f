"""Who and where the terminal is."""

from typing import Final

from gateway.domain.ids import Actor, ChatType, Place

PLATFORM: Final = "terminal"
PLACE: Final = Place(platform=PLATFORM, chat="local", chat_type=ChatType.DM)
PERSON: Final = Actor(platform=PLATFORM, id="local", name="you")


def attached_place(name: str) -> Place:
    """Return the chat of a terminal that attaches to a running gateway; `local` is the one above."""
    return Place(platform=PLATFORM, chat=name, chat_type=ChatType.DM)
