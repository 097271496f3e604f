"""Hands over the files of messages, piece by piece: never more in memory, and never unpacked.

The token goes to Slack's own hosts alone; without it Slack answers its page for signing in.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast
from urllib.parse import urlsplit

import aiohttp

from adapters.slack.client import Client
from adapters.slack.errors import Refused
from gateway.domain.errors import (
    AdapterError,
    DeliveryDeferred,
    FileGone,
    FileTooLarge,
    FileUnavailable,
)
from gateway.domain.message import Attachment

MAX_DOWNLOAD_BYTES: Final = 1_000_000_000
PIECE_BYTES: Final = 1 << 16

_NAME: Final = "Slack"
_HOSTS: Final = (".slack.com", ".slack-edge.com", ".slack-files.com")
_WAIT: Final = aiohttp.ClientTimeout(total=None, connect=10.0, sock_read=20.0)
_OK: Final = 200
_GONE: Final = frozenset({400, 404, 410})


class Fetcher:
    """Fetches for one account; `root` is its API, whose host may have the token as well."""

    def __init__(self, client: Client, root: str) -> None:
        self._client = client
        self._own = urlsplit(root).netloc

    @asynccontextmanager
    async def fetch(self, file: Attachment) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Open a file by its `ref`; its bytes come in pieces.

        Raises:
            FileTooLarge: Slack does not hand it over.
            FileGone: Slack has it no longer.
            FileUnavailable: It could not be had now.
        """
        if file.size is not None and file.size > MAX_DOWNLOAD_BYTES:
            raise FileTooLarge(MAX_DOWNLOAD_BYTES, file.size)
        known = await self._known(file)
        address = str(known.get("url_private_download") or known.get("url_private") or "")
        headers = {
            "Authorization": f"Bearer {self._client.token}",
            "Accept-Encoding": "identity",
        }
        if not self._is_slacks(address):
            raise FileGone(_NAME)
        try:
            async with self._client.session.get(
                address, headers=headers, timeout=_WAIT, allow_redirects=False
            ) as answer:
                _check(answer, file)
                yield answer.content.iter_chunked(PIECE_BYTES)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise FileUnavailable(_NAME, type(error).__name__) from None

    async def _known(self, file: Attachment) -> Mapping[str, Any]:
        try:
            answer = await self._client.ask("files.info", file=file.ref or "")
        except DeliveryDeferred as error:
            wait = error.retry_after
            raise FileUnavailable(_NAME, "it asks to wait", retry_after=wait) from error
        except Refused as error:
            if error.code in ("file_not_found", "file_deleted"):
                raise FileGone(_NAME) from error
            raise FileUnavailable(_NAME, str(error)) from error
        except AdapterError as error:
            raise FileUnavailable(_NAME, str(error)) from error
        return cast("Mapping[str, Any]", answer.get("file") or {})

    def _is_slacks(self, address: str) -> bool:
        parts = urlsplit(address)
        if parts.netloc == self._own:
            return parts.scheme in ("http", "https")
        return parts.scheme == "https" and f".{parts.hostname or ''}".endswith(_HOSTS)


def _check(answer: aiohttp.ClientResponse, file: Attachment) -> None:
    if answer.status in _GONE:
        raise FileGone(_NAME)
    if answer.status != _OK:
        raise FileUnavailable(_NAME, f"it answered {answer.status}")
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise FileUnavailable(_NAME, "it came packed")
    if answer.content_type == "text/html" and file.media_type != "text/html":
        raise FileUnavailable(_NAME, "it asks to sign in: does the app have the scope files:read?")
