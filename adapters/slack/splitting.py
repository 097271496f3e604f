"""Cuts what is too long for one block or one message, with nothing lost and code still code. Pure."""

import re
import unicodedata
from typing import Final

_FENCE: Final = re.compile(r"[ ]{0,3}(`{3,}|~{3,})[^\n]*")
_BREAKS: Final = ("\n\n", "\n", " ")
_ENTITY: Final = re.compile(r"&[a-z]{0,3}\Z")
_JOINS: Final = frozenset("\u200d\ufe0e\ufe0f")
_MAX_CLUSTER: Final = 16


def units(text: str) -> int:
    """Return the length Slack counts: UTF-16 units are never less."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(markdown: str, limit: int) -> list[str]:
    """Split one block of Markdown into pieces; a fenced block is closed and opened again."""
    if units(markdown) <= limit:
        return [markdown]
    fence = _FENCE.match(markdown)
    if fence is None:
        return cut(markdown, limit)
    opening, _, body = markdown.partition("\n")
    closing = fence[1]
    lines = body.rstrip("\n").split("\n")
    if lines and lines[-1].strip() == closing:
        lines.pop()
    inside = cut("\n".join(lines), limit - units(opening) - len(closing) - 2, keep_lines=True)
    return [f"{opening}\n{piece}\n{closing}" for piece in inside]


def cut(text: str, limit: int, *, keep_lines: bool = False) -> list[str]:
    """Cut a text at paragraphs, lines or words where there are any; no character is cut.

    Only the blank space at a cut is dropped; with `keep_lines` only one line break is.
    """
    pieces: list[str] = []
    rest = text
    while units(rest) > limit:
        head = _head(rest, limit)
        rest = rest[len(head) :]
        if keep_lines:
            rest = rest if head.endswith("\n") else rest.removeprefix("\n")
            pieces.append(head.removesuffix("\n"))
        else:
            pieces.append(head.rstrip())
            rest = rest.lstrip(" \n")
    return [*pieces, rest] if rest.strip() or keep_lines else pieces


def _head(text: str, limit: int) -> str:
    end = _within(text, limit)
    for mark in _BREAKS:
        found = text.rfind(mark, end // 2, end)
        if found > 0:
            return text[: found + len(mark)]
    return text[: _whole(text, end)]


def _within(text: str, limit: int) -> int:
    """Return how many characters have at most that many units."""
    end = min(len(text), limit)
    while units(text[:end]) > limit:
        end -= max(1, (units(text[:end]) - limit) // 2)
    return end


def _whole(text: str, end: int) -> int:
    """Step back from the middle of what is one character to the eye, or of an escape."""
    entity = _ENTITY.search(text, 0, end)
    if entity is not None and entity.start() > 0:
        return entity.start()
    for back in range(min(_MAX_CLUSTER, end - 1)):
        here, before = text[end - back : end - back + 1], text[end - back - 1]
        joined = here in _JOINS or before == "\u200d" or (here and unicodedata.combining(here))
        if not joined:
            return end - back
    return end
