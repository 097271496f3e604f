"""What was spent, and what was done besides deciding."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from gateway.domain.ids import Actor
from gateway.domain.operations.upkeep import AddAudit
from gateway.domain.question import Surface
from store.codec import RowLike, actor_from_text, clean, ms, object_from_json, storable
from store.readers.conversations import NO_BOUND
from store.readers.database import Database
from store.readers.decoding import decode_each
from store.sql.reads import books as sql


class BookReader:
    """Implements `gateway.ports.Books`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def usage(self, *, since: datetime, actor: Actor | None = None) -> Mapping[str, int]:
        """Return tokens by model since then, of one actor or of all."""
        if actor is None:
            rows = await self._database.all(sql.USAGE, since=ms(since))
        else:
            rows = await self._database.all(
                sql.USAGE_OF, since=ms(since), actor=storable(str(actor))
            )
        return {clean(row["model"]): row["tokens"] for row in rows}

    async def audit(self, *, before: int | None = None, limit: int) -> Sequence[AddAudit]:
        """Return lines of the books, newest first."""
        bound = NO_BOUND if before is None else before
        rows = await self._database.all(sql.AUDIT, before=bound, limit=limit)
        return decode_each(rows, _line_from_row, what="audit line")


def _line_from_row(row: RowLike) -> AddAudit:
    return AddAudit(
        actor=actor_from_text(row["actor"]),
        surface=Surface(row["surface"]),
        action=clean(row["action"]),
        subject=clean(row["subject"]),
        detail=object_from_json(row["detail"]),
    )
