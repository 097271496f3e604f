"""What one column holds: times, text and JSON. Reading is tolerant.

Connections decode text with `surrogateescape` (`decode_text`); since `storable` lets no lone
surrogate into a column, one that is read marks bytes that are no UTF-8.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol, cast

from gateway.domain.canonical import CanonicalJson, canonical

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_NUL: Final = "\u2400"
_LOST: Final = "\ufffd"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

decode_text = partial(str, encoding="utf-8", errors="surrogateescape")
"""The `text_factory` of every connection: bytes that are no UTF-8 never fail a query."""


class RowLike(Protocol):
    """A row by column name: `sqlite3.Row`, a dict."""

    def __getitem__(self, key: str, /) -> Any: ...


def ms(at: datetime) -> int:
    """Return the epoch milliseconds of an aware time, rounded down."""
    return (at - EPOCH) // _MILLISECOND


def from_ms(value: int) -> datetime:
    """Return the aware UTC time of epoch milliseconds."""
    return EPOCH + timedelta(milliseconds=value)


def ms_or_none(at: datetime | None) -> int | None:
    """Return `ms`, or None for no time."""
    return None if at is None else ms(at)


def from_ms_or_none(value: int | None) -> datetime | None:
    """Return `from_ms`, or None for NULL."""
    return None if value is None else from_ms(value)


def storable(text: str) -> str:
    """Return text that every engine's plain TEXT column takes: NUL and lone surrogates replaced."""
    if "\x00" in text:
        text = text.replace("\x00", _NUL)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub(_LOST, text)
    return text


def readable(text: str) -> tuple[str, bool]:
    """Return the text of a column without what could not be decoded, and whether there was any."""
    clean = storable(text)
    return clean, clean is not text


clean = storable
"""Returns `readable` text when nobody asks whether it was whole."""


def to_json(value: object) -> CanonicalJson:
    """Return the canonical text of a JSON value; any mapping and any sequence will do.

    Raises:
        NotCanonical: It is not JSON, or holds NaN.
    """
    return canonical(_plain(value))


def from_json(text: str) -> Any:
    """Read JSON that this module wrote.

    Raises:
        ValueError: The column does not hold JSON.
    """
    return json.loads(text)


def object_from_json(text: str | None) -> dict[str, object]:
    """Read a JSON object; damaged or missing text is an empty one."""
    value = _tolerant(text)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def list_from_json(text: str | None) -> list[object]:
    """Read a JSON list; damaged or missing text is an empty one."""
    value = _tolerant(text)
    return cast("list[object]", value) if isinstance(value, list) else []


def _tolerant(text: str | None) -> object:
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {key: _plain(item) for key, item in items}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value
