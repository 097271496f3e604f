"""What was sent, as adapters look it up: by the ids their platform gave it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from gateway.domain.delivery import DeliveryKind, KnownId, Neighbours, SentMessage
from gateway.domain.ids import DeliveryId
from store.codec import RowLike, clean, from_ms, place_from_row, storable
from store.readers.database import Database
from store.readers.decoding import decode_each, decode_one
from store.sql.reads import sent as sql

MAX_KNOWN: Final = 500
DEPTH: Final = 20_000
"""Rows looked at from the newest one on, whichever platform they are of."""


class SentReader:
    """Implements `gateway.ports.SentMessages`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(
        self, platform: str, account: str, chat: str, native_ids: Sequence[str]
    ) -> SentMessage | None:
        """Return the newest message of a chat that goes by one of these ids."""
        row = await self._database.first(
            sql.FIND,
            platform=platform,
            account=account,
            chat=storable(chat),
            ids=json.dumps([storable(item) for item in native_ids]),
        )
        return None if row is None else decode_one(row, _sent_from_row, what="delivery")

    async def parked(self, platform: str, account: str) -> Mapping[str, datetime]:
        """Return the chats that were to be left alone, and until when."""
        rows = await self._database.all(sql.PARKED, platform=platform, account=account)
        return {clean(row["chat_key"]): from_ms(row["parked_until"]) for row in rows}

    async def neighbours(self, delivery: DeliveryId) -> Neighbours:
        """Return the ids around a send, newest first, and how many sends are open."""
        asked = await self._database.first(sql.ASKED, delivery=delivery)
        if asked is None:
            return Neighbours(known=(), unsettled=0)
        account = {"platform": asked["platform"], "account": asked["account"]}
        rows: list[RowLike] = []
        for statement in (sql.KNOWN_SENT, sql.KNOWN_RECEIVED, sql.KNOWN_GIVEN):
            rows += await self._database.all(statement, depth=DEPTH, limit=MAX_KNOWN, **account)
        began = asked["sending_at"] or 0

        def known(row: RowLike) -> KnownId:
            return KnownId(
                chat=clean(row["chat_key"]),
                native_id=clean(row["native_id"]),
                earlier=(row["at"] or 0) <= began,
            )

        count = await self._database.first(sql.UNSETTLED, **account)
        return Neighbours(
            known=decode_each(rows, known, what="message id"),
            unsettled=0 if count is None else count["unsettled"],
        )

    async def answered(self, delivery: DeliveryId) -> str | None:
        """Return the id of the newest message that the turn behind a delivery answers."""
        row = await self._database.first(sql.ANSWERED, delivery=delivery)
        return None if row is None or row["native_id"] is None else clean(row["native_id"])


def _sent_from_row(row: RowLike) -> SentMessage:
    return SentMessage(
        place=place_from_row(row),
        kind=DeliveryKind(row["kind"]),
        native_id=clean(row["native_id"]),
        payload=clean(row["payload"]),
    )
