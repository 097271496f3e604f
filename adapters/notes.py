"""What a reader is told of how a message came."""

from typing import Final

from gateway.domain.delivery import Mark

NOTES: Final = {
    Mark.REPEAT: "(sent again: the first time may have arrived)",
    Mark.MOVED: "(its topic is gone)",
}
"""A lost look needs no word."""


def notes_of(marks: frozenset[Mark]) -> list[str]:
    """Return the words for these marks, in a fixed order."""
    return [NOTES[mark] for mark in NOTES if mark in marks]
