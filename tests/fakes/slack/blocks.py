"""What Slack takes of a message or a modal, judged by Slack's own models and by its documents.

The SDK's validators stop at the block; what is inside of it is judged here (facts §3).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.state import Json

MAX_BLOCKS: Final = 50
MAX_VIEW_BLOCKS: Final = 100
MAX_MARKDOWN: Final = 12_000
MAX_WHOLE: Final = 13_200
MAX_TEXT: Final = 40_000
MAX_UPDATE_BYTES: Final = 4_000
MAX_ROWS: Final = 100
MAX_COLUMNS: Final = 20

_PING: Final = re.compile(r"<(![a-z^]+|@[UW]\w+|#C\w+)[^>]*>")
_MENTION: Final = re.compile(r"<@(\w+)(?:\|[^>]*)?>")


def check(blocks: Sequence[Json], *, most: int = MAX_BLOCKS) -> None:
    """Judge the blocks of a message or a modal.

    Raises:
        ApiError: Slack would not take them.
    """
    if len(blocks) > most:
        raise _bad(f"no more than {most} items allowed")
    for block in blocks:
        _check_block(block)
    ids = [block["block_id"] for block in blocks if block.get("block_id")]
    if len(set(ids)) != len(ids):
        raise _bad("block_ids must be unique")
    if sum(block["type"] == "table" for block in blocks) > 1:
        raise ApiError("invalid_attachments", errors=["only one table is allowed in a message"])
    markdown = sum(len(block["text"]) for block in blocks if block["type"] == "markdown")
    if markdown > MAX_MARKDOWN:
        raise ApiError("msg_too_long", errors=["markdown is limited to 12000 characters"])
    if sum(len(text) for text in texts(blocks)) > MAX_WHOLE:
        raise ApiError("msg_blocks_too_long")


def _check_block(block: Json) -> None:
    # The SDK types what it parses as any mapping.
    parsed = Block.parse(block)  # pyright: ignore[reportUnknownMemberType]
    if parsed is None:
        raise _bad(f"unsupported type: {block.get('type')}")
    try:
        parsed.validate_json()
    except SlackObjectFormationError as error:
        raise _bad(str(error)) from error
    if len(block.get("block_id") or "") > 255:
        raise _bad("block_id is too long")
    if block["type"] in ("markdown", "section") and not "".join(texts([block])).strip():
        raise _bad("must be more than 0 characters")
    if block["type"] == "table":
        _check_table(block["rows"])
    seen: set[str] = set()
    for element in _elements(block):
        _check_element(element, seen)


def _check_table(rows: Sequence[Sequence[Json]]) -> None:
    if not 1 <= len(rows) <= MAX_ROWS or any(len(row) > MAX_COLUMNS for row in rows):
        raise _bad("a table has at most 100 rows and 20 columns")
    for cell in (cell for row in rows for cell in row):
        if cell["type"] == "raw_text" and not cell["text"]:
            raise _bad("must be more than 0 characters: a cell")


def _check_element(element: Json, seen: set[str]) -> None:
    action = element.get("action_id", "")
    if len(action) > 255 or (action and action in seen):
        raise _bad("action_id must be unique and at most 255 characters")
    seen.add(action)
    if len(element.get("value", "")) > 2000:
        raise _bad("value is at most 2000 characters")
    label = element.get("text")
    if element["type"] == "button" and not 1 <= len(label["text"] if label else "") <= 75:
        raise _bad("a button's text has 1 to 75 characters")
    if element.get("style") not in (None, "primary", "danger"):
        raise _bad("style is primary or danger")
    options = element.get("options")
    if options is None:
        return
    if not 1 <= len(options) <= 100:
        raise _bad("1 to 100 options")
    for option in options:
        if not 1 <= len(option["text"]["text"]) <= 75 or not 1 <= len(option["value"]) <= 150:
            raise _bad("an option's text has 1 to 75 characters, its value 1 to 150")


def _elements(block: Json) -> Iterator[Json]:
    if block["type"] in ("actions", "context_actions"):
        yield from block["elements"]
    elif block["type"] == "input":
        yield block["element"]
    elif "accessory" in block:
        yield block["accessory"]


def check_view(view: Json) -> None:
    """Judge a modal.

    Raises:
        ApiError: Slack would not open it.
    """
    if view.get("type") != "modal":
        raise _bad("only modals are modelled here")
    for name, most in (("title", 24), ("submit", 24), ("close", 24)):
        if len(view.get(name, {}).get("text", "")) > most:
            raise _bad(f"{name} is at most {most} characters")
    if not view.get("title"):
        raise _bad("missing required field: title")
    if len(view.get("private_metadata", "")) > 3000 or len(view.get("callback_id", "")) > 255:
        raise _bad("private_metadata or callback_id is too long")
    if any(block["type"] == "input" for block in view["blocks"]) and not view.get("submit"):
        raise _bad("submit is required when there are inputs")
    check(view["blocks"], most=MAX_VIEW_BLOCKS)


def texts(blocks: Sequence[Json]) -> list[str]:
    """Return every text of blocks, in order, as it is written."""
    return [text for text, _ in _texts(blocks)]


def shown(blocks: Sequence[Json], text: str) -> str:
    """Return what people read: the blocks when there are any, entities decoded."""
    found = _texts(blocks) or [(text, "mrkdwn")]
    return "\n".join(part if kind == "literal" else unescaped(part) for part, kind in found if part)


def pings(blocks: Sequence[Json], text: str) -> list[str]:
    """Return what of a message would notify people: specials and mentions in marked-up texts."""
    found = [(text, "mrkdwn"), *_texts(blocks)]
    return [m[0] for part, kind in found if kind != "literal" for m in _PING.finditer(part)]


def mentioned(blocks: Sequence[Json], attachments: Sequence[Json], text: str) -> set[str]:
    """Return who is mentioned anywhere."""
    found = {m[1] for part in (text, *texts(blocks)) for m in _MENTION.finditer(part)}
    for attachment in attachments:
        found |= {m[1] for m in _MENTION.finditer(str(attachment.get("text", "")))}
        found |= mentioned(attachment.get("blocks", []), [], "")
    return found | set(_users(list(blocks)))


def unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _users(node: Any) -> Iterator[str]:
    """Walk rich text for user elements."""
    if isinstance(node, dict):
        body = cast("Json", node)
        if body.get("type") == "user":
            yield str(body["user_id"])
        for value in body.values():
            yield from _users(value)
    elif isinstance(node, list):
        for value in cast("list[Any]", node):
            yield from _users(value)


def _texts(node: Any) -> list[tuple[str, str]]:
    """Return texts with how they are read: `mrkdwn` (also Markdown) or `literal`."""
    if isinstance(node, list | tuple):
        return [found for item in cast("list[Any]", node) for found in _texts(item)]
    if not isinstance(node, dict):
        return []
    body = cast("Json", node)
    kind, text = body.get("type"), body.get("text")
    if isinstance(text, str):
        return [(text, "mrkdwn" if kind in ("mrkdwn", "markdown") else "literal")]
    inner = (
        "text",
        "fields",
        "elements",
        "rows",
        "label",
        "hint",
        "element",
        "options",
        "accessory",
    )
    return [found for name in inner for found in _texts(body.get(name))]


def _bad(problem: str) -> ApiError:
    return ApiError("invalid_blocks", errors=[problem])
