"""Finds out whether a send without an answer arrived: every message of ours says which delivery it is.

Slack keeps what a message carries, so the history is read from the newest message before it on.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from adapters.slack.client import Client
from adapters.slack.ids import PLATFORM, is_ts, thread_of
from adapters.slack.outbound import is_of
from adapters.slack.payload import Payload
from gateway.domain.delivery import Delivery, DeliveryKind, Receipt
from gateway.domain.errors import (
    AdapterError,
    AdapterUnauthorized,
    DeliveryDeferred,
    DeliveryUnsure,
)
from gateway.ports import Clock
from gateway.ports.reading import SentMessages

logger = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 1.0
"""What is under way may still arrive; then it is looked for."""
PATIENCE_SECONDS: Final = 60.0
"""How long an unreachable service is asked again; the outbox waits a little longer."""
FIRST_WAIT_SECONDS: Final = 0.5
LONGEST_WAIT_SECONDS: Final = 8.0
MAX_PAGES: Final = 5
PAGE: Final = 200


class Settling:
    """Settles sends for one account."""

    def __init__(self, client: Client, store: SentMessages, clock: Clock) -> None:
        self._client = client
        self._store = store
        self._clock = clock

    async def settle(self, delivery: Delivery, channel: str) -> Receipt | None:
        """Return the receipt of a send that arrived, None when it certainly did not.

        Raises:
            DeliveryUnsure: It cannot be found out.
        """
        await self._clock.sleep(SETTLE_SECONDS)
        until = self._clock.monotonic() + PATIENCE_SECONDS
        wait = FIRST_WAIT_SECONDS
        while True:
            try:
                return await self._look(delivery, channel)
            except DeliveryDeferred as error:
                pause = error.retry_after
            except DeliveryUnsure:
                pause = wait
                wait = min(wait * 2, LONGEST_WAIT_SECONDS)
            except AdapterUnauthorized:
                raise
            except AdapterError as error:
                raise DeliveryUnsure(PLATFORM, str(error)) from error
            if self._clock.monotonic() + pause > until:
                raise DeliveryUnsure(PLATFORM, "its history could not be read")
            await self._clock.sleep(pause)

    async def _look(self, delivery: Delivery, channel: str) -> Receipt | None:
        thread = thread_of(delivery.place)
        since = await self._since(delivery, channel)
        values: dict[str, object] = {"channel": channel, "limit": PAGE, "oldest": since or None}
        values["include_all_metadata"] = "true"
        method = "conversations.history"
        if thread is not None:
            method = "conversations.replies"
            values["ts"] = thread
        messages, whole = await self._client.pages(method, "messages", most=MAX_PAGES, **values)
        for message in messages:
            if _is_it(message, delivery):
                return Receipt(native_id=str(message["ts"]))
        if whole:
            return None
        raise DeliveryUnsure(PLATFORM, "too many messages may be it")

    async def _since(self, delivery: Delivery, channel: str) -> str:
        """Return the newest message of the chat that is known to be older than the send."""
        around = await self._store.neighbours(delivery.id)
        chats = (channel, delivery.place.chat)
        earlier = [item.native_id for item in around.known if item.earlier and item.chat in chats]
        return max(filter(is_ts, earlier), default="")


def _is_it(message: Mapping[str, Any], delivery: Delivery) -> bool:
    if delivery.kind is not DeliveryKind.FILE:
        return is_of(message, delivery)
    # A file carries nothing of ours; its names are what it is known by.
    name = Payload.from_json(delivery.payload).name
    names = [file.name for file in delivery.files] or [name]
    shared = [str(file.get("name")) for file in message.get("files") or ()]
    return bool(message.get("bot_id")) and shared == names
