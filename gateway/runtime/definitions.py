"""What has changed in a tool since somebody last allowed it, in words for its card. Pure."""

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Final

from gateway.domain.text import shorten, show_escapes
from gateway.domain.tools import AgreedTool, ToolSpec

MAX_LINES: Final = 12
MAX_LINE: Final = 200

CHANGED: Final = "This tool has changed since it was last allowed"


def change_of(agreed: AgreedTool | None, spec: ToolSpec) -> str:
    """Return how a tool differs from what was agreed to, "" when it does not or nothing was."""
    if agreed is None or agreed.definition_sha == spec.definition_sha:
        return ""
    changes = [
        line
        for line in difflib.unified_diff(
            _lines(agreed.definition), _lines(definition_of(spec)), n=0, lineterm=""
        )
        if not line.startswith(("---", "+++", "@@"))
    ]
    if not changes:
        return f"{CHANGED}, in a part that is not shown here."
    shown = [shorten(show_escapes(line), MAX_LINE) for line in changes[:MAX_LINES]]
    more = len(changes) - MAX_LINES
    rest = [f"(+{more} lines)"] if more > 0 else []
    return "\n".join([f"{CHANGED}:", *shown, *rest])


def definition_of(spec: ToolSpec) -> Mapping[str, object]:
    """Return what a person agrees to when they allow a tool."""
    return {
        "title": spec.title,
        "description": spec.description,
        "input_schema": dict(spec.input_schema),
        "read_only": spec.read_only,
        "idempotent": spec.idempotent,
        "destructive": spec.destructive,
    }


def _lines(definition: Mapping[str, object]) -> list[str]:
    text = json.dumps(definition, indent=1, sort_keys=True, ensure_ascii=False, default=str)
    return list(_told(text.splitlines()))


def _told(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        plain = line.strip().rstrip(",")
        # A brace alone says nothing about what has changed.
        if plain.strip("{}[]"):
            yield plain
