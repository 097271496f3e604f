"""Text with formatting as Telegram counts it: UTF-16 units, entities beside the text. Pure.

Entities never need escaping, so nothing here can be misread as markup.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

MAX_TEXT: Final = 4096
"""UTF-16 units of one message."""
MAX_ENTITIES: Final = 100
"""Telegram drops further ones of a message without a word."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BLANK: Final = "\u115f\u1160\u2800\u3164\uffa0"
_BREAKS: Final = ("\n\n", "\n", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A stretch of text with a look; offset and length in UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""

    @property
    def end(self) -> int:
        """The unit behind its last one."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True, kw_only=True)
class Rich:
    """One text and the entities over it."""

    text: str
    entities: tuple[Entity, ...] = ()


class Builder:
    """Puts a text together piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._entities: list[Entity] = []
        self._units = 0

    @property
    def units(self) -> int:
        """How long the text is by now."""
        return self._units

    def add(self, text: str, look: str = "", *, language: str = "") -> None:
        """Append a piece, with a look if one is named."""
        length = units(text)
        if look and text:
            self._entities.append(
                Entity(type=look, offset=self._units, length=length, language=language)
            )
        self._pieces.append(text)
        self._units += length

    def build(self) -> Rich:
        """Return what was put together."""
        return Rich(text="".join(self._pieces), entities=tuple(self._entities))


def units(text: str) -> int:
    """Return the length Telegram counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def sendable(text: str) -> str:
    """Replace what cannot be written as UTF-8: unpaired surrogates."""
    return _SURROGATE.sub("\ufffd", text)


def is_visible(text: str) -> bool:
    """Whether anything of a text would be seen; Telegram refuses what is empty to the eye."""
    return any(
        unicodedata.category(character)[0] not in "CZ" and character not in _BLANK
        for character in text
    )


def cut(text: str, limit: int) -> tuple[str, str]:
    """Split off at most `limit` units without cutting a character."""
    if units(text) <= limit:
        return text, ""
    raw = text.encode("utf-16-le", "surrogatepass")
    end = _whole(raw, limit)
    head = raw[: 2 * end].decode("utf-16-le", "surrogatepass")
    return head, text[len(head) :]


def split(rich: Rich, *, limit: int = MAX_TEXT) -> tuple[Rich, ...]:
    """Split into messages, at paragraphs, lines or words where there are any.

    What spans a cut goes on in the next message: a code block keeps its language. Only blank
    space at a cut is dropped.
    """
    raw = rich.text.encode("utf-16-le", "surrogatepass")
    entities = sorted(set(rich.entities), key=lambda entity: (entity.offset, -entity.length))
    parts: list[Rich] = []
    start, total = 0, len(raw) // 2
    open_from = 0
    while start < total:
        end = _end(raw, start, limit)
        inside, open_from = _inside(entities, start, end, open_from)
        if len(inside) > MAX_ENTITIES:
            end, inside = _fewer(raw, start, inside)
        part = _part(raw, start, end, inside)
        if is_visible(part.text):
            parts.append(part)
        start = end
    return tuple(parts)


def _end(raw: bytes, start: int, limit: int) -> int:
    """Return where a part that begins at `start` ends."""
    end = start + limit
    if end >= len(raw) // 2:
        return len(raw) // 2
    for mark in _BREAKS:
        found = _last(raw, mark.encode("utf-16-le"), start + limit // 2, end)
        if found:
            return found
    return _whole(raw, end)


def _last(raw: bytes, mark: bytes, start: int, end: int) -> int:
    """Return the unit behind the last mark between the two units, 0 without one."""
    at = raw.rfind(mark, 2 * start, 2 * end)
    while at > 0 and at % 2:
        at = raw.rfind(mark, 2 * start, at + len(mark) - 1)
    return 0 if at < 0 else (at + len(mark)) // 2


def _whole(raw: bytes, at: int) -> int:
    """Step back from the middle of a surrogate pair."""
    unit = int.from_bytes(raw[2 * at : 2 * at + 2], "little")
    return at - 1 if 0xDC00 <= unit < 0xE000 else at


def _inside(
    entities: Sequence[Entity], start: int, end: int, first: int
) -> tuple[list[Entity], int]:
    """Return the entities that reach into a part, and from where to look for the next one."""
    while first < len(entities) and entities[first].end <= start:
        first += 1
    found: list[Entity] = []
    for index in range(first, len(entities)):
        entity = entities[index]
        if entity.offset >= end:
            break
        if entity.end > start:
            found.append(entity)
    return found, first


def _fewer(raw: bytes, start: int, inside: list[Entity]) -> tuple[int, list[Entity]]:
    """End the part before the first entity too many."""
    end = inside[MAX_ENTITIES].offset
    if end <= start:
        # So many over one place: the innermost ones are given up, the text stays.
        later = next((entity.offset for entity in inside if entity.offset > start), None)
        end = later if later is not None else max(entity.end for entity in inside)
        return end, inside[:MAX_ENTITIES]
    for mark in _BREAKS[1:]:
        found = _last(raw, mark.encode("utf-16-le"), start + (end - start) // 2, end)
        if found:
            end = found
            break
    return end, [entity for entity in inside[:MAX_ENTITIES] if entity.offset < end]


def _part(raw: bytes, start: int, end: int, inside: Iterable[Entity]) -> Rich:
    text = raw[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")
    kept = text.rstrip()
    body = kept.lstrip("\n")
    skipped = len(kept) - len(body)
    lead, total = start + skipped, units(body)
    entities: list[Entity] = []
    for entity in inside:
        offset = max(entity.offset, lead)
        length = min(entity.end, lead + total) - offset
        if length > 0:
            entities.append(replace(entity, offset=offset - lead, length=length))
    return Rich(text=body, entities=tuple(entities))
