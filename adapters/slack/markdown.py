"""Markdown as Slack's `markdown` and `table` blocks take it: nothing in it can ping, nothing is lost. Pure.

Slack renders Markdown itself. What a text says is written so that none of Slack's own notation can
come of it; links show their host; pictures become links, since Slack would fetch them by itself.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote

import pyromark

from adapters import links

MAX_ROWS: Final = 100
MAX_COLUMNS: Final = 20
MAX_TABLE: Final = 8_000
"""Characters of a table; a larger one becomes aligned text."""

_OPTIONS: Final = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NOTATION: Final = re.compile(r"<(?=[!@#])")
_APART: Final = "<\u200b"

_Event: TypeAlias = "str | dict[str, Any]"
_Ranged: TypeAlias = "tuple[_Event, dict[str, int]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """A stretch of Markdown, ready for a `markdown` block."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells, as plain text; all have as many."""

    rows: tuple[tuple[str, ...], ...]


Chunk: TypeAlias = Prose | Table


def escape(text: str) -> str:
    """Write the three characters of which Slack's notation is made so that they are only read."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def sendable(text: str) -> str:
    """Replace what cannot be written as UTF-8: unpaired surrogates."""
    return _SURROGATE.sub("\ufffd", text)


def chunks_of(markdown: str) -> tuple[Chunk, ...]:
    """Return the blocks of a text, in order; each can stand in a message of its own."""
    source = sendable(markdown.replace("\r\n", "\n"))
    events = cast("Sequence[_Ranged]", tuple(pyromark.events_with_range(source, options=_OPTIONS)))
    return tuple(_Reader(source.encode()).read(events))


def aligned(table: Table) -> str:
    """Return a table as text in columns, for a code block."""
    widths = [max(len(row[n]) for row in table.rows) for n in range(len(table.rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table.rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def fits(table: Table) -> bool:
    """Whether Slack takes it as a table."""
    size = sum(len(cell) for row in table.rows for cell in row)
    return len(table.rows) <= MAX_ROWS and len(table.rows[0]) <= MAX_COLUMNS and size <= MAX_TABLE


class _Reader:
    """Walks through the parser's events and writes each block anew."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._told_to = 0

    def read(self, events: Sequence[_Ranged]) -> Iterator[Chunk]:
        depth, block = 0, list[_Ranged]()
        for event, where in events:
            if depth == 0:
                yield from self._gap(where["start"])
            block.append((event, where))
            if isinstance(event, dict):
                depth += ("Start" in event) - ("End" in event)
            if depth == 0:
                yield from self._block(block)
                self._told_to = max(self._told_to, where["end"])
                block = []
        yield from self._gap(len(self._source))

    def _gap(self, end: int) -> Iterator[Chunk]:
        """Show what the parser made nothing of: definitions of links."""
        left = self._slice(self._told_to, end).strip()
        self._told_to = max(self._told_to, end)
        if left:
            yield Prose(text=_apart(escape(left)))

    def _block(self, block: Sequence[_Ranged]) -> Iterator[Chunk]:
        first, where = block[0]
        if isinstance(first, dict) and "Table" in _tag(first, "Start"):
            table = self._table(block)
            yield table if fits(table) else Prose(text=_code(aligned(table)))
            return
        text = _Writer(self._source, where["start"]).write(block, end=block[-1][1]["end"])
        if text.strip():
            yield Prose(text=_apart(text.strip("\n")))

    def _table(self, block: Sequence[_Ranged]) -> Table:
        rows: list[list[str]] = []
        cell_end = 0
        for event, where in block:
            if not isinstance(event, dict):
                if rows and rows[-1]:
                    rows[-1][-1] += " "
                continue
            start, end = _tag(event, "Start"), _tag(event, "End")
            if start in ("TableHead", "TableRow"):
                rows.append([])
            elif start == "TableCell":
                rows[-1].append("")
            elif end == "TableCell":
                cell_end = where["end"]
            elif end == "TableRow":
                # The parser passes over the cells of a row beyond those of its head.
                left = self._slice(cell_end, where["end"]).strip("| \t\n")
                rows[-1] += [left] if left else []
            elif rows and rows[-1]:
                said = _said(event)
                told = links.told(_url(event), rows[-1][-1]) if "End" not in event else ""
                rows[-1][-1] += said + told
        width = max(len(row) for row in rows)
        return Table(
            rows=tuple(
                tuple(cell.strip() or " " for cell in (*row, *[""] * (width - len(row))))
                for row in rows
            )
        )

    def _slice(self, start: int, end: int) -> str:
        return self._source[start:end].decode("utf-8", "replace")


@dataclass(slots=True)
class _Link:
    url: str
    words: list[str] = field(default_factory=list[str])


class _Writer:
    """Writes one block: its marks as they are, its words so that they are only words."""

    def __init__(self, source: bytes, start: int) -> None:
        self._source = source
        self._at = start
        self._out: list[str] = []
        self._links: list[_Link] = []
        self._in_code = 0

    def write(self, block: Sequence[_Ranged], *, end: int) -> str:
        for event, where in block:
            if isinstance(event, dict):
                self._one(event, where["start"], where["end"])
        self._copy(end)
        return "".join(self._out)

    def _one(self, event: dict[str, Any], start: int, end: int) -> None:
        if "Start" in event:
            self._start(event, start)
        elif "End" in event:
            self._end(event, end)
        elif "Text" in event:
            self._copy(start)
            self._words(str(event["Text"]), end)
        elif "Code" in event:
            # The marks around it are part of its range.
            self._copy(end)
            self._say(str(event["Code"]))
        elif "Html" in event or "InlineHtml" in event:
            self._copy(start)
            self._out.append(escape(self._take(end)))

    def _start(self, event: dict[str, Any], start: int) -> None:
        tag = event["Start"]
        if isinstance(tag, dict) and "CodeBlock" in tag:
            self._in_code += 1
        if (url := _url(event)) != "":
            self._copy(start)
            self._links.append(_Link(url))
            # What opens it is written anew: `[`, `![` or `<`.
            opening = 2 if self._source[start : start + 1] == b"!" else 1
            self._at = start + opening
            self._out.append("[" if links.allowed(url) else "")

    def _end(self, event: dict[str, Any], end: int) -> None:
        tag = event["End"]
        if tag == "CodeBlock" or (isinstance(tag, dict) and "CodeBlock" in tag):
            self._in_code -= 1
        elif tag in ("Link", "Image") and self._links:
            link = self._links.pop()
            label = "".join(link.words)
            self._at = end
            if not links.allowed(link.url):
                self._out.append(f" ({escape(link.url)})" if link.url != label else "")
                return
            if not label.strip():
                self._out.append(escape(link.url))
            self._out.append(
                f"]({quote(link.url, safe=_URL)}){links.told(link.url, label or link.url)}"
            )

    def _words(self, said: str, end: int) -> None:
        written = self._take(end)
        self._say(said)
        if self._in_code:
            self._out.append(written)
        elif written == said:
            if self._out and self._out[-1].endswith("\\") and said[:1] in "&<>":
                # Written as itself it needs no backslash, and after one it would be read wrongly.
                self._out[-1] = self._out[-1][:-1]
            self._out.append(escape(written))
        else:
            # An entity says already how it is to be read.
            self._out.append(written.replace("<", "&lt;").replace(">", "&gt;"))

    def _copy(self, end: int) -> None:
        if end > self._at:
            self._out.append(self._take(end))

    def _take(self, end: int) -> str:
        text = self._source[self._at : end].decode("utf-8", "replace")
        self._at = max(self._at, end)
        return text

    def _say(self, text: str) -> None:
        for link in self._links:
            link.words.append(text)


_URL: Final = "/:?#[]@!$&'*+,;=%-._~"


def _apart(text: str) -> str:
    """Take Slack's notation apart wherever it is left: in code, and in marks."""
    return _NOTATION.sub(_APART, text)


def _code(text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=2)
    fence = "`" * max(3, longest + 1)
    return _apart(f"{fence}\n{text}\n{fence}")


def _tag(event: Mapping[str, Any], side: str) -> Any:
    tag = event.get(side)
    return tag if tag is not None else ""


def _said(event: Mapping[str, Any]) -> str:
    found = (event.get(kind) for kind in ("Text", "Code", "Html", "InlineHtml"))
    return next((str(text) for text in found if text is not None), "")


def _url(event: Mapping[str, Any]) -> str:
    """Return what an opening tag links to, "" when it is none."""
    tag = event.get("Start")
    if not isinstance(tag, dict):
        return ""
    tags = cast("Mapping[str, Mapping[str, Any]]", tag)
    link = tags.get("Link") or tags.get("Image")
    return "" if link is None else str(link.get("dest_url") or " ")
