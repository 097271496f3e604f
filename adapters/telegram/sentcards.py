"""Which message of ours somebody replied to, also while its send is still under way. Remembers a little."""

import asyncio
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from adapters.telegram.forms import ids_of_card
from adapters.telegram.ids import PLATFORM, SentIds
from gateway.domain.delivery import Delivery, SentMessage
from gateway.ports.reading import SentMessages

KEPT: Final = 500
IN_FLIGHT_SECONDS: Final = 10.0
"""How long a reply waits for the answer to the send of what it replies to."""


class SentCards:
    """Finds sent cards by message id: those of this run at once, older ones in the store."""

    def __init__(self, store: SentMessages, account: str) -> None:
        self._store = store
        self._account = account
        self._recent: OrderedDict[tuple[str, int], SentMessage] = OrderedDict()
        self._in_flight: dict[str, int] = {}
        self._landed = asyncio.Event()

    @contextmanager
    def sending(self, chat: str) -> Generator[None]:
        """Mark that a card is on its way to a chat."""
        self._in_flight[chat] = self._in_flight.get(chat, 0) + 1
        try:
            yield
        finally:
            self._in_flight[chat] -= 1
            self._landed.set()
            self._landed = asyncio.Event()

    def note(self, delivery: Delivery, ids: SentIds) -> None:
        """Remember a card by each of its messages."""
        sent = SentMessage(
            place=delivery.place,
            kind=delivery.kind,
            native_id=str(ids),
            payload=delivery.payload,
        )
        for message in ids.all:
            self._recent[delivery.place.chat, message] = sent
        while len(self._recent) > KEPT:
            self._recent.popitem(last=False)

    async def find(self, chat: str, message: int) -> SentMessage | None:
        """Return the card that a message of ours is, or is the prompt of.

        Raises:
            StoreBusy: It cannot be read now.
        """
        found = self._recent.get((chat, message))
        if found is None and self._in_flight.get(chat):
            await self._until_landed(chat)
            found = self._recent.get((chat, message))
        if found is not None:
            return found
        return await self._store.find(PLATFORM, self._account, chat, ids_of_card(message))

    async def _until_landed(self, chat: str) -> None:
        try:
            async with asyncio.timeout(IN_FLIGHT_SECONDS):
                while self._in_flight.get(chat):
                    await self._landed.wait()
        except TimeoutError:
            return
