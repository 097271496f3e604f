"""One bad row never breaks a list: it is left out, and the log says which."""

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from store.codec import RowLike

_logger = logging.getLogger(__name__)

_T = TypeVar("_T")


def decode_each(
    rows: Iterable[RowLike], decode: Callable[[RowLike], _T], *, what: str
) -> tuple[_T, ...]:
    """Decode the rows that can be decoded, in their order."""
    found = (decode_one(row, decode, what=what) for row in rows)
    return tuple(value for value in found if value is not None)


def decode_one(row: RowLike, decode: Callable[[RowLike], _T], *, what: str) -> _T | None:
    """Decode a row; None when it is damaged beyond what a value of its kind can say."""
    try:
        return decode(row)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        _logger.warning("%s %s is damaged and left out: %s", what, row["id"], type(error).__name__)
        return None
