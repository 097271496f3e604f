"""What Slack's own notation says, as plain text; and who is mentioned, wherever it stands. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

MAX_DEPTH: Final = 12
"""Of nested blocks; Slack's own go half as deep."""

_SPECIAL: Final = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_MENTION: Final = re.compile(r"<@(\w+)(?:\|[^<>]*)?>")
_INNER: Final = ("text", "fields", "elements", "rows", "title", "pretext", "blocks", "attachments")

Json = Mapping[str, Any]


def plain(text: str) -> str:
    """Return a text as people read it: links, names and characters instead of their notation."""
    return unescape(_SPECIAL.sub(_said, text))


def unescape(text: str) -> str:
    """Return the three characters that Slack writes differently."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def without_call(text: str, user: str) -> str:
    """Return a text without the mention of a user it begins with."""
    if not user:
        return text
    return re.sub(rf"^\s*<@{re.escape(user)}(?:\|[^<>]*)?>[\s,:]*", "", text)


def text_of(message: Json) -> str:
    """Return the text of a message, from its blocks and attachments when it has no other."""
    text = str(message.get("text") or "")
    if text.strip():
        return text
    found = [*_texts(message.get("blocks")), *_texts(message.get("attachments"))]
    return "\n".join(part for part in found if part.strip())


def mentions(message: Json, user: str) -> bool:
    """Whether a message names a user: in its text, its blocks or its attachments."""
    if not user:
        return False
    nodes = [message.get(name) for name in ("text", "blocks", "attachments")]
    return any(found == user for node in nodes for found in _named(node))


def _said(match: re.Match[str]) -> str:
    kind, name, label = match[1], match[2], match[3]
    if kind == "@":
        return f"@{label or name}"
    if kind == "#":
        return f"#{label or name}"
    if kind == "!":
        return label or f"@{name.partition('^')[0]}"
    return f"{label} ({name})" if label and label not in (name, name.partition("://")[2]) else name


def _texts(node: object, depth: int = 0) -> list[str]:
    """Return the texts of blocks, one for each stretch."""
    if depth > MAX_DEPTH:
        return []
    if isinstance(node, list):
        return [text for item in cast("list[object]", node) for text in _texts(item, depth + 1)]
    if not isinstance(node, dict):
        return []
    body = cast("Json", node)
    if body.get("type") in ("rich_text_section", "rich_text_preformatted", "rich_text_quote"):
        return ["".join(_inline(item) for item in cast("list[Json]", body.get("elements") or []))]
    if body.get("type") == "button":
        return []
    text = body.get("text")
    if isinstance(text, str):
        return [text]
    return [found for name in _INNER for found in _texts(body.get(name), depth + 1)]


def _inline(element: Json) -> str:
    match element.get("type"):
        case "user":
            return f"<@{element.get('user_id')}>"
        case "channel":
            return f"<#{element.get('channel_id')}>"
        case "broadcast":
            return f"<!{element.get('range')}>"
        case "link":
            return f"<{element.get('url')}|{element.get('text') or element.get('url')}>"
        case "emoji":
            return f":{element.get('name')}:"
        case _:
            return str(element.get("text") or "")


def _named(node: object, depth: int = 0) -> Iterator[str]:
    """Walk through everything for mentions, also those of rich text."""
    if depth > MAX_DEPTH:
        return
    if isinstance(node, str):
        yield from (match[1] for match in _MENTION.finditer(node))
    elif isinstance(node, list | tuple):
        for item in cast("Sequence[object]", node):
            yield from _named(item, depth + 1)
    elif isinstance(node, dict):
        body = cast("Json", node)
        if body.get("type") == "user":
            yield str(body.get("user_id"))
        for value in body.values():
            yield from _named(value, depth + 1)
