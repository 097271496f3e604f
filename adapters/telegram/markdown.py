"""Markdown as Telegram shows it. telegramify-markdown writes the text; we choose what it is told.

Its `convert` drops raw HTML, unused link definitions and the `$` and `||` of shell lines, and
links wherever it is asked to. So the parser's events pass through here first. Pure.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import pyromark
from telegramify_markdown import MessageEntity, RenderConfig
from telegramify_markdown.converter import EventWalker

from adapters import links
from adapters.telegram.rich import Entity, Rich, sendable

_OPTIONS: Final = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
)
_LOOKS: Final = frozenset(
    {"bold", "italic", "underline", "strikethrough", "code", "pre", "text_link", "blockquote"}
)
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9+#_.-]{1,32}")

_Event: TypeAlias = "str | dict[str, Any]"
_Ranged: TypeAlias = "tuple[_Event, dict[str, int]]"
_Write: TypeAlias = "Callable[[tuple[_Ranged, ...]], tuple[str, list[MessageEntity], object]]"


def render(markdown: str) -> Rich:
    """Return the text people see and how it looks; no visible character is lost."""
    source = sendable(markdown.replace("\r\n", "\n"))
    events = cast("Sequence[_Ranged]", tuple(pyromark.events_with_range(source, options=_OPTIONS)))
    passed = tuple(_Pass(source.encode()).through(events))
    text, entities = _write(source, passed)
    return Rich(
        text=text,
        entities=tuple(
            Entity(
                type=item.type,
                offset=item.offset,
                length=item.length,
                url=item.url or "",
                language=_language(item.language),
            )
            for item in entities
            if item.type in _LOOKS
        ),
    )


def _write(source: str, events: tuple[_Ranged, ...]) -> tuple[str, Sequence[MessageEntity]]:
    # The library types the events as any tuple.
    write = cast("_Write", EventWalker(_config(), source).walk)  # pyright: ignore[reportUnknownMemberType]
    text, entities, _ = write(events)
    return text, entities


def _language(name: str | None) -> str:
    found = _LANGUAGE.match(name or "")
    return found[0] if found else ""


def _config() -> RenderConfig:
    config = RenderConfig.isolated()
    config.cite_expandable = False
    symbol = config.markdown_symbol
    symbol.heading_level_1 = symbol.heading_level_2 = ""
    symbol.heading_level_3 = symbol.heading_level_4 = ""
    symbol.image = ""
    symbol.unordered_list_item = "•"
    symbol.task_uncompleted = "☐"
    symbol.task_completed = "☑"
    return config


class _Pass:
    """Hands events on, changed where the library would lose or link something."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._depth = 0
        self._told_to = 0
        self._links: list[tuple[str, list[str]]] = []
        self._single: list[bool] = []
        self._cell_end = 0

    def through(self, events: Sequence[_Ranged]) -> Iterator[_Ranged]:
        """Return the events the library is to write."""
        for event, where in events:
            if self._depth == 0:
                yield from self._gap(where["start"])
            yield from self._one(event, where)
            if self._depth == 0:
                self._told_to = max(self._told_to, where["end"])
        yield from self._gap(len(self._source))

    def _gap(self, end: int) -> Iterator[_Ranged]:
        """Show what the parser made nothing of: definitions of links."""
        left = self._source[self._told_to : end].decode().strip()
        if left:
            where = {"start": self._told_to, "end": end}
            yield from _paragraph([left], where)
        self._told_to = max(self._told_to, end)

    def _one(self, event: _Event, where: dict[str, int]) -> Iterator[_Ranged]:
        if isinstance(event, str):
            self._say("\n")
            yield event, where
            return
        if "Start" in event:
            self._depth += 1
            yield from self._start(event, where)
        elif "End" in event:
            self._depth -= 1
            yield from self._end(event, where)
        elif "Html" in event or "InlineHtml" in event:
            html = str(event.get("Html") or event.get("InlineHtml"))
            self._say(html)
            yield {"Text": html}, where
        else:
            self._say(str(event.get("Text") or event.get("Code") or ""))
            yield event, where

    def _start(self, event: dict[str, Any], where: dict[str, int]) -> Iterator[_Ranged]:
        tag = event["Start"]
        if tag == "HtmlBlock":
            yield {"Start": "Paragraph"}, where
        elif tag == "Strikethrough":
            # One `~` reads as "about"; two strike through.
            single = self._source[where["start"] + 1 : where["start"] + 2] != b"~"
            self._single.append(single)
            yield ({"Text": "~"} if single else event), where
        elif (info := _info(tag)) and _LANGUAGE.fullmatch(info) is None:
            # More than a language: words that somebody wrote behind the marks.
            yield {"Start": {"CodeBlock": {"Fenced": _language(info)}}}, where
            yield {"Text": info + "\n"}, where
        elif (link := _link(tag)) is not None:
            url = str(link.get("dest_url", ""))
            self._links.append((url, []))
            shown = url if links.allowed(url) else ""
            yield {"Start": {"Link": {**link, "dest_url": shown}}}, where
        else:
            yield event, where

    def _end(self, event: dict[str, Any], where: dict[str, int]) -> Iterator[_Ranged]:
        tag = event["End"]
        if tag == "HtmlBlock":
            yield {"End": "Paragraph"}, where
        elif tag == "TableCell":
            self._cell_end = where["end"]
            yield event, where
        elif tag == "TableRow":
            yield from self._more_cells(where)
            yield event, where
        elif tag == "Strikethrough":
            yield ({"Text": "~"} if self._single.pop() else event), where
        elif tag in ("Link", "Image"):
            url, words = self._links.pop()
            # A picture without a description is nothing to press.
            if links.allowed(url) and not "".join(words).strip():
                self._say(url)
                yield {"Text": url}, where
            if links.allowed(url):
                yield {"End": "Link"}, where
                yield {"Text": links.told(url, "".join(words) or url)}, where
        else:
            yield event, where

    def _more_cells(self, where: dict[str, int]) -> Iterator[_Ranged]:
        """Show the cells of a row beyond those of its head, which the parser passes over."""
        left = self._source[self._cell_end : where["end"]].decode().strip("| \t\n")
        if left:
            yield {"Start": "TableCell"}, where
            yield {"Text": left}, where
            yield {"End": "TableCell"}, where

    def _say(self, text: str) -> None:
        for _, words in self._links:
            words.append(text)


def _info(tag: object) -> str:
    """Return what stands behind the opening marks of a fenced block."""
    if not isinstance(tag, dict):
        return ""
    block = cast("Mapping[str, Any]", tag).get("CodeBlock")
    return (
        str(cast("Mapping[str, Any]", block).get("Fenced", "")) if isinstance(block, dict) else ""
    )


def _link(tag: object) -> Mapping[str, Any] | None:
    """Return what a tag links to; a picture is a link as well."""
    if not isinstance(tag, dict):
        return None
    tags = cast("Mapping[str, Mapping[str, Any]]", tag)
    return tags.get("Link") or tags.get("Image")


def _paragraph(lines: Sequence[str], where: dict[str, int]) -> Iterator[_Ranged]:
    yield {"Start": "Paragraph"}, where
    for line in lines:
        yield {"Text": line}, where
    yield {"End": "Paragraph"}, where
