"""Turns the raw result of `tools/call` into what a model and a person may read. Pure."""

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from gateway.domain.message import AttachmentKind
from gateway.domain.tools import CallState, ToolFile, ToolResult
from mcp_host.sanitize import clean_json, clean_line, clean_meta, clean_text

MAX_TEXT: Final = 1_000_000
MAX_BLOCKS: Final = 1_000
MAX_NAME: Final = 200
MAX_FILES: Final = 20
"""Of one result; the others are only named."""
MAX_FILE_BYTES: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class _Read:
    text: str = ""
    file: ToolFile | None = None


def read_result(
    raw: Mapping[str, object], *, call: str, ms: int = 0, notes: Sequence[str] = ()
) -> ToolResult:
    """Read leniently: a block we do not understand is named, the others stay."""
    content = raw.get("content")
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    reads = [_read_block(block) for block in blocks[:MAX_BLOCKS]]
    lines = [read.text for read in reads if read.text]
    if len(blocks) > MAX_BLOCKS:
        lines.append(f"({len(blocks) - MAX_BLOCKS} more parts were left out)")
    structured, left_out = _structured(raw.get("structuredContent"))
    text, rest = _bounded("\n".join(lines))
    files = [read.file for read in reads if read.file is not None]
    meta = raw.get("_meta")
    return ToolResult(
        call=call,
        state=CallState.OK if raw.get("isError") in {None, False} else CallState.ERROR,
        text="\n".join([text, *left_out, *map(clean_text, notes)]).strip("\n"),
        structured=structured,
        meta=clean_meta(cast("dict[str, object]", meta)) if isinstance(meta, dict) else {},
        attachments=(*files[:MAX_FILES], *rest),
        ms=ms,
    )


def _structured(value: object) -> tuple[Mapping[str, object] | None, tuple[str, ...]]:
    if value is None:
        return None, ()
    cleaned = clean_json(value)
    size = len(json.dumps(cleaned))
    if size > MAX_TEXT:
        return None, (f"(structured content of {size} characters was left out)",)
    if isinstance(cleaned, dict):
        return cast("dict[str, object]", cleaned), ()
    # Since 2026-07-28 it may be any JSON value.
    return {"value": cleaned}, ()


def _read_block(block: object) -> _Read:
    if not isinstance(block, dict):
        return _Read("(a part that is no object)")
    fields = cast("dict[str, object]", block)
    match fields.get("type"):
        case "text":
            return _Read(clean_text(_text(fields, "text")))
        case "image":
            return _file(AttachmentKind.IMAGE, fields, data=_text(fields, "data"))
        case "audio":
            return _file(AttachmentKind.AUDIO, fields, data=_text(fields, "data"))
        case "resource_link":
            return _Read(f"[link {_label(fields)}: {clean_text(_text(fields, 'uri'))}]")
        case "resource":
            return _read_resource(fields.get("resource"))
        case other:
            return _Read(f"(a part of the unknown type {clean_line(str(other), limit=MAX_NAME)})")


def _read_resource(resource: object) -> _Read:
    if not isinstance(resource, dict):
        return _Read("(a resource that is no object)")
    fields = cast("dict[str, object]", resource)
    text = fields.get("text")
    if isinstance(text, str):
        where = clean_line(_text(fields, "uri"), limit=MAX_NAME)
        return _Read(f"[resource {where}]\n{clean_text(text)}")
    return _file(AttachmentKind.FILE, fields, data=_text(fields, "blob"))


def _file(kind: AttachmentKind, fields: Mapping[str, object], *, data: str) -> _Read:
    media_type = clean_line(_text(fields, "mimeType"), limit=MAX_NAME)
    media_type = media_type or "application/octet-stream"
    name = _label(fields)
    described = " ".join(part for part in (kind.value, name, media_type) if part)
    size = len(data) * 3 // 4 - data[-2:].count("=")
    if size > MAX_FILE_BYTES:
        return _Read(f"[{described}, {size} bytes: more than {MAX_FILE_BYTES}, left out]")
    try:
        contents = b64decode(data, validate=True)
    except ValueError:
        return _Read(f"[{described}: it cannot be read]")
    return _Read(
        text=f"[{described}, {len(contents)} bytes]",
        file=ToolFile(kind=kind, media_type=media_type, name=name, data=contents),
    )


def _label(fields: Mapping[str, object]) -> str:
    for key in ("title", "name", "uri"):
        label = clean_line(_text(fields, key), limit=MAX_NAME)
        if label:
            return label
    return ""


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _bounded(text: str) -> tuple[str, tuple[ToolFile, ...]]:
    """Return what the model sees of a text, and the whole as a file when that is not all."""
    if len(text) <= MAX_TEXT:
        return text, ()
    cut = f"{text[:MAX_TEXT]}\n(cut: {len(text)} characters, the first {MAX_TEXT} are shown)"
    whole = text.encode("utf-8", "replace")
    if len(whole) > MAX_FILE_BYTES:
        return cut, ()
    file = ToolFile(
        kind=AttachmentKind.FILE,
        media_type="text/plain",
        name="result.txt",
        data=whole,
        for_chat=False,
    )
    return cut, (file,)
