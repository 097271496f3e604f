"""Files of messages: which there are, which are awaited, and what they take."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gateway.domain.ids import AttachmentId, MessageId, Place
from gateway.domain.message import Attachment
from gateway.domain.operations.files import PendingFile, Room
from store.codec import RowLike, clean, file_from_row, place_from_row, storable
from store.readers.database import Database
from store.readers.decoding import decode_each, decode_one
from store.sql.reads import files as sql

MAX_PENDING: Final = 10_000
"""Read at once; whoever works them off asks for those behind the last."""


class FileReader:
    """Implements `gateway.ports.Files`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, messages: Sequence[MessageId]) -> Mapping[MessageId, tuple[Attachment, ...]]:
        """Return the files of messages, those without any left out."""
        if not messages:
            return {}
        ids = json.dumps(list(messages))
        found = by_message(await self._database.all(sql.OF_MESSAGES, messages=ids))
        return {MessageId(message): files for message, files in found.items()}

    async def pending(self, *, after: AttachmentId | None = None) -> Sequence[PendingFile]:
        """Return files that were announced and are not here, oldest first, those behind `after`."""
        rows = await self._database.all(sql.PENDING, after=after or 0, limit=MAX_PENDING)
        return decode_each(rows, _pending_from_row, what="attachment")

    async def room(self, place: Place) -> Room:
        """Return what the files take that are kept."""
        row = await self._database.first(sql.ROOM, session_key=storable(place.session_key))
        if row is None:
            return Room(conversation=0, everything=0)
        return Room(conversation=row["conversation"], everything=row["everything"])

    async def unknown(self, keys: Sequence[str]) -> Sequence[str]:
        """Return those keys that no row names."""
        rows = await self._database.all(sql.UNKNOWN, keys=json.dumps(list(keys)))
        return [clean(row["key"]) for row in rows]


def by_message(rows: Iterable[RowLike]) -> dict[int, tuple[Attachment, ...]]:
    """Return files by their message; a damaged one is left out."""
    found: dict[int, tuple[Attachment, ...]] = {}
    for row in rows:
        file = decode_one(row, file_from_row, what="attachment")
        if file is not None:
            message: int = row["message_id"]
            found[message] = (*found.get(message, ()), file)
    return found


def _pending_from_row(row: RowLike) -> PendingFile:
    return PendingFile(
        file=file_from_row(row),
        message=MessageId(row["message_id"]),
        place=place_from_row(row),
    )
