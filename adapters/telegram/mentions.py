"""Keeps names in our texts from notifying people. Pure.

Telegram makes a mention of every `@name` by itself, whatever the entities say. A word joiner behind
the `@` has no width and ends that; where nothing is recognised (code, links) the text stays as it is.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from adapters.telegram.rich import Entity, Rich, split, units

JOINER: Final = "\u2060"

_OPAQUE: Final = frozenset({"code", "pre", "text_link"})
_MENTION: Final = re.compile(r"(?<![A-Za-z0-9_])@(?=[A-Za-z0-9_])")
_ADDRESS: Final = re.compile(
    r"(?<!\w)https?://(?:[\w-]+\.)+(?:[A-Za-z]{2,}|\d{1,3})(?::\d+)?"
    r"(?:[/?#][\w\-.~:/?#@!$&'*+,;=%]*)?"
)
_RUN: Final = re.compile(r"\S+")


def quieted(text: str) -> str:
    """Return a text that looks the same and mentions nobody."""
    return quiet(Rich(text=text)).text


def quiet(rich: Rich) -> Rich:
    """Return it looking the same and mentioning nobody."""
    places = list(_mentions(rich)) if "@" in rich.text else []
    if not places:
        return rich
    pieces, at = list[str](), 0
    for place, _ in places:
        pieces += (rich.text[at:place], JOINER)
        at = place
    marks = [unit for _, unit in places]
    return Rich(
        text="".join((*pieces, rich.text[at:])),
        entities=tuple(_moved(entity, marks) for entity in rich.entities),
    )


def split_quietly(rich: Rich, *, limit: int) -> Iterator[Rich]:
    """Split into messages that mention nobody, also where a cut makes a mention of what was none."""
    for piece in split(quiet(rich), limit=limit):
        again = quiet(piece)
        if again is piece:
            yield piece
        else:
            yield from split_quietly(again, limit=limit)


class _Stretches:
    """Parts of a text, by their first unit and the one behind their last."""

    def __init__(self, parts: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(parts):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def touch(self, start: int, end: int) -> bool:
        """Whether any of them reaches into this one."""
        at = bisect_right(self._ends, start)
        return at < len(self._starts) and self._starts[at] < end


def _mentions(rich: Rich) -> Iterator[tuple[int, int]]:
    """Return where a joiner belongs: the character, and the unit it is at."""
    opaque = _Stretches((e.offset, e.end) for e in rich.entities if e.type in _OPAQUE)
    addresses = _Stretches(_addresses(rich.text, opaque))
    for found, unit in _found(_MENTION, rich.text):
        if not opaque.touch(unit, unit + 1) and not addresses.touch(unit, unit + 1):
            yield found.end(), unit + 1


def _addresses(text: str, opaque: _Stretches) -> Iterator[tuple[int, int]]:
    """Return what Telegram makes a link of as a whole: a joiner would break it."""
    for run, begin in _found(_RUN, text):
        # How far Telegram reads is not known; if that were into code it would be no link.
        if "://" not in run[0] or opaque.touch(begin, begin + units(run[0])):
            continue
        for found, unit in _found(_ADDRESS, run[0]):
            yield begin + unit, begin + unit + units(found[0])


def _found(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Return every match with the unit it begins at."""
    at = unit = 0
    for found in pattern.finditer(text):
        unit += units(text[at : found.start()])
        at = found.start()
        yield found, unit


def _moved(entity: Entity, marks: Sequence[int]) -> Entity:
    before = bisect_right(marks, entity.offset)
    inside = bisect_left(marks, entity.end) - before
    return replace(entity, offset=entity.offset + before, length=entity.length + max(inside, 0))
