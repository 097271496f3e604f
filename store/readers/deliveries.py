"""The outbox, for those who wait for it or work it off."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gateway.domain.delivery import Delivery, DeliveryStatus
from gateway.domain.ids import DeliveryId, Place
from store.codec import RowLike, clean, delivery_from_row, from_ms_or_none, storable
from store.readers.database import Database
from store.readers.decoding import decode_each
from store.sql.reads import deliveries as sql

MAX_PARTS: Final = 1_000
MAX_UNSURE: Final = 200
MAX_CARDS: Final = 200


class DeliveryReader:
    """Implements `gateway.ports.Deliveries`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def group(self, group_key: str) -> Sequence[DeliveryStatus]:
        """Return the parts of one reply or request, in order."""
        rows = await self._database.all(sql.GROUP, group_key=storable(group_key), limit=MAX_PARTS)
        return tuple(_status_from_row(row) for row in rows)

    async def unsure(self, platform: str, account: str) -> Sequence[Delivery]:
        """Return sends of an account whose outcome is not known, oldest first."""
        rows = await self._database.all(
            sql.UNSURE, platform=platform, account=account, limit=MAX_UNSURE
        )
        return decode_each(rows, delivery_from_row, what="delivery")

    async def cards(self, place: Place) -> Sequence[Delivery]:
        """Return the newest sent card of each pending question shown in a conversation."""
        rows = await self._database.all(
            sql.CARDS, session_key=storable(place.session_key), limit=MAX_CARDS
        )
        return decode_each(rows, delivery_from_row, what="delivery")

    async def next_at(self, platform: str, account: str) -> datetime | None:
        """Return when an account's next delivery may be tried, its chat's pause and budget included.

        None when there is none, or all wait for another delivery of their conversation.
        """
        row = await self._database.first(sql.NEXT_DELIVERY, platform=platform, account=account)
        return None if row is None else from_ms_or_none(row["at"])


def _status_from_row(row: RowLike) -> DeliveryStatus:
    native_id = row["native_id"]
    return DeliveryStatus(
        id=DeliveryId(row["id"]),
        state=row["state"],
        native_id=None if native_id is None else clean(native_id),
        error=clean(row["last_error"] or ""),
    )
