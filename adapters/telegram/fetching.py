"""Hands over the files of messages, piece by piece: never more in memory, and never unpacked."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx
from telegram import Bot
from telegram import error as sdk

from adapters.telegram.errors import cause_of, retry_seconds, says
from gateway.domain.errors import FileGone, FileTooLarge, FileUnavailable
from gateway.domain.message import Attachment

MAX_DOWNLOAD_BYTES: Final = 20_000_000
"""What the Bot API hands over of one file."""
PIECE_BYTES: Final = 1 << 16

_NAME: Final = "Telegram"
_WAIT: Final = httpx.Timeout(20.0, connect=10.0)
_OK: Final = 200
_GONE: Final = frozenset({400, 404, 410})


class Fetcher:
    """Fetches for one bot; `aclose` it after the last file."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        # Made for the first file: its certificates take memory that a bot without files need not.
        self._made: httpx.AsyncClient | None = None

    @property
    def _client(self) -> httpx.AsyncClient:
        # The library's own client reads a whole answer before it gives any of it.
        if self._made is None:
            self._made = httpx.AsyncClient(
                timeout=_WAIT, headers={"accept-encoding": "identity"}, follow_redirects=False
            )
        return self._made

    @asynccontextmanager
    async def fetch(self, file: Attachment) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Open a file by its `ref`; its bytes come in pieces.

        Raises:
            FileTooLarge: Telegram does not hand it over.
            FileGone: Telegram has it no longer.
            FileUnavailable: It could not be had now.
        """
        if file.size is not None and file.size > MAX_DOWNLOAD_BYTES:
            raise FileTooLarge(MAX_DOWNLOAD_BYTES, file.size)
        address = await self._address(file)
        try:
            async with self._client.stream("GET", address) as answer:
                _check(answer)
                yield answer.aiter_raw(PIECE_BYTES)
        except httpx.HTTPError as error:
            # Its text holds the address, and that the token.
            raise FileUnavailable(_NAME, type(error).__name__) from None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._made is not None:
            await self._made.aclose()

    async def _address(self, file: Attachment) -> str:
        try:
            found = await self._bot.get_file(file.ref or "")
        except sdk.RetryAfter as error:
            wait = retry_seconds(error)
            raise FileUnavailable(_NAME, "it asks to wait", retry_after=wait) from error
        except sdk.BadRequest as error:
            if says(error, "too big"):
                raise FileTooLarge(MAX_DOWNLOAD_BYTES, file.size) from error
            raise FileGone(_NAME) from error
        except (sdk.Forbidden, sdk.InvalidToken) as error:
            raise FileUnavailable(_NAME, "it refused us") from error
        except sdk.TelegramError as error:
            raise FileUnavailable(_NAME, cause_of(error)) from error
        address = found.file_path or ""
        # A service of its own may name a path of its machine, which could be any of ours.
        if not address.startswith(("https://", "http://")):
            raise FileGone(_NAME)
        return address


def _check(answer: httpx.Response) -> None:
    if answer.status_code in _GONE:
        raise FileGone(_NAME)
    if answer.status_code != _OK:
        raise FileUnavailable(_NAME, f"it answered {answer.status_code}")
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise FileUnavailable(_NAME, "it came packed")
