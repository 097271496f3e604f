"""Files of messages in columns."""

from collections.abc import Sequence
from typing import Any, Final

from gateway.domain.files import FileState
from gateway.domain.ids import AttachmentId
from gateway.domain.message import Attachment, AttachmentKind
from store.codec.columns import RowLike, clean, from_json

_NAMES: Final[tuple[str, ...]] = (
    "id",
    "kind",
    "name",
    "media_type",
    "size",
    "native_ref",
    "state",
    "path_key",
    "sha256",
    "error",
)


def file_from_row(row: RowLike) -> Attachment:
    """Read the columns of `store.sql.columns.FILE`."""
    return Attachment(
        id=AttachmentId(row["id"]),
        kind=AttachmentKind(row["kind"]),
        media_type=clean(row["media_type"]),
        name=clean(row["name"]),
        size=row["size"],
        ref=None if row["native_ref"] is None else clean(row["native_ref"]),
        state=FileState(row["state"]),
        key=clean(row["path_key"] or ""),
        sha256=clean(row["sha256"] or ""),
        problem=clean(row["error"] or ""),
    )


def files_from_json(text: str | None) -> tuple[Attachment, ...]:
    """Read the files of a delivery, in the order they were given.

    Raises:
        ValueError: A row says what no file can be.
    """
    if not text:
        return ()
    rows: list[list[Any]] = from_json(text)
    return tuple(file_from_row(_Named(row)) for row in sorted(rows, key=lambda row: row[0]))


class _Named:
    """Implements `RowLike` over values in the order of the columns."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def __getitem__(self, key: str, /) -> Any:
        return self._values[_NAMES.index(key)]
