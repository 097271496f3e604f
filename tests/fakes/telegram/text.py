"""Text as Telegram keeps it: counted in UTF-16 units, cleaned, trimmed, with checked entities."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from tests.fakes.telegram.errors import bad_request
from tests.fakes.telegram.state import Json

MAX_TEXT: Final = 4096
MAX_CAPTION: Final = 1024
MAX_ENTITIES: Final = 100
_KINDS: Final = (
    "mention hashtag cashtag bot_command url email phone_number bold italic underline strikethrough"
    " spoiler blockquote expandable_blockquote code pre text_link text_mention custom_emoji"
)
_FOUND: Final = (
    ("url", re.compile(r"https?://[^\s<>\"]+[^\s<>\".,;:!?)\]}'`*]")),
    (
        "bot_command",
        re.compile(r"(?<![\w/<])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/@>])"),
    ),
    ("mention", re.compile(r"(?<!\w)@[A-Za-z]\w{2,31}(?!\w)", re.ASCII)),
)
_BLANK: Final = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
_OPAQUE: Final = frozenset({"code", "pre", "text_link", "text_mention"})
"""Nothing is recognised by itself inside these."""


def units(text: str) -> int:
    """The length Telegram counts."""
    return len(text) + sum(1 for character in text if ord(character) > 0xFFFF)


def is_seen(text: str) -> bool:
    """Whether anything of it is visible; Telegram sends nothing else."""
    return any(unicodedata.category(c)[0] not in "CZ" and c not in _BLANK for c in text)


def part(text: str, entity: Json) -> str:
    """The stretch of a text an entity covers."""
    raw = text.encode("utf-16-le", "surrogatepass")
    start = 2 * int(entity["offset"])
    return raw[start : start + 2 * int(entity["length"])].decode("utf-16-le", "surrogatepass")


def formatted(text: str, entities: Sequence[Json], problems: list[str]) -> tuple[str, list[Json]]:
    """Return text and entities as they are stored.

    What Telegram drops without a word is named in `problems`.

    Raises:
        ApiError: an entity does not fit the text.
    """
    kept, moved = _cleaned(text)
    if len(entities) > MAX_ENTITIES:
        problems.append(f"{len(entities)} entities: those beyond {MAX_ENTITIES} are dropped")
    placed: list[Json] = []
    for entity in entities[:MAX_ENTITIES]:
        if entity["type"] not in _KINDS.split():
            raise bad_request('can\'t parse MessageEntity: Field "type" has unsupported value')
        if entity["offset"] < 0 or entity["length"] <= 0:
            problems.append(f"an entity that covers nothing is dropped: {entity}")
            continue
        placed.append(_moved(entity, moved, units(text)))
    return _trimmed(kept, placed)


def with_found(text: str, entities: Iterable[Json]) -> list[Json]:
    """Add the links, commands and mentions Telegram finds by itself."""
    given = list(entities)
    blocked = [e for e in given if e["type"] in _OPAQUE]
    for kind, pattern in _FOUND:
        for match in pattern.finditer(text):
            offset = units(text[: match.start()])
            found: Json = {"type": kind, "offset": offset, "length": units(match.group())}
            if not any(_overlap(found, other) for other in blocked):
                given.append(found)
                blocked.append(found)
    return sorted(given, key=lambda entity: (entity["offset"], -entity["length"]))


def _cleaned(text: str) -> tuple[str, dict[int, int]]:
    """Drop what Telegram never shows; the map leads from old offsets to new ones."""
    kept: list[str] = []
    moved: dict[int, int] = {}
    old = new = 0
    for character in text:
        moved[old] = new
        width = 2 if ord(character) > 0xFFFF else 1
        old += width
        if character == "\r" or "\u2028" <= character <= "\u202e":
            continue
        kept.append(" " if character < " " and character not in "\n\t" else character)
        new += width
    moved[old] = new
    return "".join(kept), moved


def _moved(entity: Json, moved: dict[int, int], total: int) -> Json:
    start, end = entity["offset"], entity["offset"] + entity["length"]
    if start >= total:
        raise bad_request(f"entity begins after the end of the text at UTF-16 offset {start}")
    if end > total:
        raise bad_request(f"entity ends after the end of the text at UTF-16 offset {end}")
    if start not in moved:
        raise bad_request(f"entity begins in a middle of a UTF-16 symbol at byte offset {start}")
    if end not in moved:
        raise bad_request(f"entity ends in a middle of a UTF-16 symbol at byte offset {end}")
    return entity | {"offset": moved[start], "length": moved[end] - moved[start]}


def _trimmed(text: str, entities: Sequence[Json]) -> tuple[str, list[Json]]:
    text = text.rstrip()
    first = min((entity["offset"] for entity in entities), default=len(text))
    lead = min(len(text) - len(text.lstrip()), first)
    text = text[lead:]
    total = units(text)
    kept: list[Json] = []
    for entity in entities:
        start = entity["offset"] - lead
        length = min(entity["length"], total - start)
        if length > 0:
            kept.append(entity | {"offset": start, "length": length})
    return text, sorted(kept, key=lambda entity: (entity["offset"], -entity["length"]))


def _overlap(one: Json, other: Json) -> bool:
    return (
        one["offset"] < other["offset"] + other["length"]
        and other["offset"] < one["offset"] + one["length"]
    )
