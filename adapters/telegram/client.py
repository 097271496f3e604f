"""The library's client, set up for one account; updates are read one by one.

The library decodes a batch of updates as a whole: one it cannot read would hold up all, and it
would log their texts. So this reads each by itself and hands over what can be read.
"""

import json
import logging
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

from telegram import Bot, Update
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from adapters.telegram.bounds import bounded_client
from adapters.telegram.config import TelegramAccount

logger = logging.getLogger(__name__)

UPDATE_KINDS: Final = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "callback_query",
)
POLL_LIMIT: Final = 100
"""Telegram gives no more at once."""
READ_SECONDS: Final = 20.0
CONNECT_SECONDS: Final = 10.0
CONNECTIONS: Final = 32
UNREADABLE: Final = "the answer cannot be read"

# A new file of a platform's wire format may be anything; these are how decoding it fails.
_UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one poll brought; `last` is the highest id, also of what could not be read."""

    updates: tuple[Update, ...]
    last: int | None
    full: bool


class QuietRequest(HTTPXRequest):
    """Reads answers like its base, which would log one that is no JSON whole."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Read an answer.

        Raises:
            TelegramError: It is no JSON object.
        """
        try:
            answer = cast("object", json.loads(payload.decode("utf-8", "replace")))
        except (ValueError, RecursionError) as error:
            raise TelegramError(UNREADABLE) from error
        if not isinstance(answer, dict):
            raise TelegramError(UNREADABLE)
        return cast("dict[str, Any]", answer)


class UpdateRequest(QuietRequest):
    """Takes the updates out of an answer before the library decodes them."""

    def __init__(self) -> None:
        super().__init__(
            connection_pool_size=1,
            read_timeout=READ_SECONDS,
            connect_timeout=CONNECT_SECONDS,
            httpx_kwargs=bounded_client(),
        )
        self._bodies: list[dict[str, Any]] = []

    def parse_json_payload(self, payload: bytes) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Read an answer; its updates are kept for `take`."""
        answer = QuietRequest.parse_json_payload(payload)
        result = answer.get("result")
        if isinstance(result, list):
            self._bodies = cast("list[dict[str, Any]]", result)
            return {**answer, "result": []}
        return answer

    def take(self) -> Sequence[dict[str, Any]]:
        """Return the updates of the last answer, once."""
        bodies, self._bodies = self._bodies, []
        return bodies


class Client:
    """One bot's calls; made by `open_client`."""

    def __init__(self, account: TelegramAccount) -> None:
        # Without this the library warns at every refusal that names a time.
        os.environ.setdefault("PTB_TIMEDELTA", "true")
        self._updates = UpdateRequest()
        self.bot = Bot(
            account.token.get_secret_value(),
            base_url=f"{account.base_url}/bot",
            base_file_url=f"{account.base_url}/file/bot",
            request=QuietRequest(
                connection_pool_size=CONNECTIONS,
                read_timeout=READ_SECONDS,
                write_timeout=READ_SECONDS,
                connect_timeout=CONNECT_SECONDS,
                pool_timeout=READ_SECONDS,
                httpx_kwargs=bounded_client(),
            ),
            get_updates_request=self._updates,
        )

    async def poll(self, *, offset: int, hold: int) -> Batch:
        """Return the next updates; whatever is before `offset` is confirmed by asking."""
        await self.bot.get_updates(
            offset=offset, limit=POLL_LIMIT, timeout=hold, allowed_updates=UPDATE_KINDS
        )
        bodies = self._updates.take()
        updates = tuple(update for body in bodies if (update := self.read(body)) is not None)
        ids = [number for body in bodies if isinstance(number := body.get("update_id"), int)]
        return Batch(updates=updates, last=max(ids, default=None), full=len(bodies) >= POLL_LIMIT)

    def read(self, body: dict[str, Any]) -> Update | None:
        """Decode one update; None, and a line in the log, when it cannot be read."""
        try:
            return Update.de_json(body, self.bot)
        except _UNREADABLE as error:
            number = body.get("update_id")
            logger.error("update %s cannot be read (%s); passed over", number, _kind(error))
            return None

    async def close(self) -> None:
        """Close the connections."""
        await self.bot.shutdown()
        await self._updates.shutdown()
        await self.bot.request.shutdown()


@asynccontextmanager
async def open_client(account: TelegramAccount) -> AsyncGenerator[Client]:
    """Open the client of an account; nothing is asked of the service yet."""
    client = Client(account)
    try:
        yield client
    finally:
        await client.close()


def _kind(error: Exception) -> str:
    return type(error).__name__
