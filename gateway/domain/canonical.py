"""Canonical JSON: the one text of a value, so that what was shown can be compared by hash."""

import hashlib
import json
from typing import Final, NewType, cast

CanonicalJson = NewType("CanonicalJson", str)
"""Sorted keys, no spaces, ASCII only, exact integers, floats as `repr` (CONTRACTS §f)."""

MAX_DEPTH = 200

# Made once: `json.dumps` makes one for every call, which costs a third of it.
_ENCODER: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
)


class NotCanonical(ValueError):
    """The text or value has no canonical form: duplicate keys, NaN, too deep, not JSON."""


def canonical(value: object) -> CanonicalJson:
    """Return the canonical text of a JSON value.

    Raises:
        NotCanonical: It holds NaN or infinity, is nested too deeply, or is not JSON.
    """
    try:
        text = _ENCODER.encode(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise NotCanonical(str(error)) from error
    return CanonicalJson(text)


def parse_json(text: str) -> object:
    """Read JSON strictly: no duplicate keys, no NaN, at most `MAX_DEPTH` levels.

    Raises:
        NotCanonical: Anything else.
    """
    try:
        value: object = json.loads(
            text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant
        )
        _check_depth(value)
    except (ValueError, RecursionError) as error:
        raise NotCanonical(str(error)) from error
    return value


def sha256_of(text: str) -> str:
    """Return the hex digest that cards show and calls are checked against."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotCanonical("duplicate key")
    return found


def _no_constant(name: str) -> object:
    raise NotCanonical(f"{name} is not JSON")


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(cast("dict[str, object]", item).values())
            elif isinstance(item, list):
                inner.extend(cast("list[object]", item))
        if not inner:
            return
        level = inner
    raise NotCanonical(f"more than {MAX_DEPTH} levels")
