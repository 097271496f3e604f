"""Cleans what servers send before a model or a person sees it. Escapes and redacts nothing.

Removed are the Unicode TAG characters, which people cannot see and models read, unless they
spell a registered flag; further variation selectors behind one, which can carry text the same
way; and the protocol's own keys of `_meta`.
"""

import re
from collections.abc import Mapping
from typing import Final, cast

from gateway.domain.text import shorten, show_escapes

MAX_DESCRIPTION: Final = 4_000
MAX_TITLE: Final = 200
MAX_DEPTH: Final = 200
"""Levels of a JSON value that are kept."""

TOO_DEEP: Final = "(nested too deeply)"

_FLAGS: Final = "|".join(
    "".join(chr(0xE0000 + ord(letter)) for letter in region)
    for region in ("gbeng", "gbsct", "gbwls")
)
_HIDDEN: Final = re.compile(
    f"(?P<flag>\U0001f3f4(?:{_FLAGS})\U000e007f)"
    "|[\U000e0000-\U000e007f]"
    "|(?P<selector>[\ufe00-\ufe0f\U000e0100-\U000e01ef])"
    "[\ufe00-\ufe0f\U000e0100-\U000e01ef\U000e0000-\U000e007f]+"
)
_RESERVED_LABELS: Final = frozenset({"modelcontextprotocol", "mcp"})
_RESERVED_KEYS: Final = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})


def clean_text(text: str, *, limit: int | None = None) -> str:
    """Return the text without hidden characters, at most `limit` characters long."""
    cleaned = text if text.isascii() else _HIDDEN.sub(_keep_visible, text)
    return cleaned if limit is None else shorten(cleaned, limit)


def clean_line(text: str, *, limit: int) -> str:
    """Return the text cleaned and folded to one line."""
    return shorten(" ".join(clean_text(text).split()), limit)


def show_name(name: str, *, limit: int) -> str:
    """Return a name from outside for one line of ours: what is hidden or breaks it is escaped."""
    return shorten(show_escapes(name).replace("\n", "\\n").replace("\t", "\\t"), limit)


def clean_json(value: object) -> object:
    """Return a JSON value with every text in it cleaned, the keys of objects too."""
    return _clean(value, MAX_DEPTH)


def clean_schema(schema: Mapping[str, object]) -> Mapping[str, object]:
    """Do the same for a JSON Schema."""
    return cast("Mapping[str, object]", clean_json(schema))


def clean_meta(meta: Mapping[str, object]) -> Mapping[str, object]:
    """Return `_meta` cleaned and without the keys MCP keeps for itself, by the old and new rule."""
    cleaned = cast("Mapping[str, object]", clean_json(meta))
    return {key: value for key, value in cleaned.items() if not _is_reserved(key)}


def _keep_visible(match: re.Match[str]) -> str:
    return match["flag"] or match["selector"] or ""


def _clean(value: object, levels: int) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        if not levels:
            return TOO_DEEP
        found: dict[str, object] = {}
        for key, inner in cast("Mapping[str, object]", value).items():
            # Of two keys that look alike the first one stays.
            found.setdefault(clean_text(key), _clean(inner, levels - 1))
        return found
    if isinstance(value, (list, tuple)):
        if not levels:
            return TOO_DEEP
        return [_clean(item, levels - 1) for item in cast("list[object]", value)]
    return value


def _is_reserved(key: str) -> bool:
    if key in _RESERVED_KEYS:
        return True
    prefix, slash, _ = key.partition("/")
    if not slash:
        return False
    labels = prefix.casefold().split(".")
    # Until 2025-06-18: such a label with another one behind it. Since: the second label.
    return any(label in _RESERVED_LABELS for label in (*labels[:-1], *labels[1:2]))
