"""What of a call's arguments is shown: indented JSON, secrets by key name hidden, nothing invisible. Pure."""

import fnmatch
import json
from collections.abc import Sequence
from typing import cast

from gateway.domain.canonical import CanonicalJson
from gateway.domain.text import show_escapes


def shown_arguments(arguments: CanonicalJson, *, redact: Sequence[str]) -> str:
    """Return arguments as a card shows them; without redacted keys, it reads back to what runs."""
    value: object = json.loads(arguments)
    shown = redacted(value, redact=redact)
    return show_escapes(json.dumps(shown, indent=2, ensure_ascii=False))


def redacted(value: object, *, redact: Sequence[str]) -> object:
    """Return a JSON value with what stands under the named keys replaced, at any depth."""
    globs = [glob.casefold() for glob in redact]
    return _redacted(value, globs) if globs else value


def _redacted(value: object, globs: Sequence[str]) -> object:
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {
            key: _hidden(inner) if _named(key, globs) else _redacted(inner, globs)
            for key, inner in items
        }
    if isinstance(value, list):
        return [_redacted(inner, globs) for inner in cast("list[object]", value)]
    return value


def _named(key: str, globs: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(key.casefold(), glob) for glob in globs)


def _hidden(value: object) -> str:
    if isinstance(value, (dict, list)):
        return f"•••• ({len(cast('list[object]', value))} items)"
    text = value if isinstance(value, str) else json.dumps(value)
    return f"•••• ({len(text)} chars)"
