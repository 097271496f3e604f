"""People who were given a code, and what became of it."""

import json
from collections.abc import Sequence

from gateway.domain.operations.pairing import Pairing, PairingState
from store.codec import pairing_from_row
from store.readers.database import Database
from store.readers.decoding import decode_each
from store.sql.reads import pairings as sql


class PairingReader:
    """Implements `gateway.ports.Pairings`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, *states: PairingState, limit: int) -> Sequence[Pairing]:
        """Return those in one of the states, newest first."""
        wanted = json.dumps([state.value for state in states])
        rows = await self._database.all(sql.PAGE, states=wanted, limit=limit)
        return decode_each(rows, pairing_from_row, what="pairing")
