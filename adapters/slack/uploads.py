"""Uploads files in the three steps Slack has for it, and finds the message they became."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, BinaryIO, Final, cast

import aiohttp

from adapters.slack.client import Client
from adapters.slack.errors import translate
from adapters.slack.ids import PLATFORM
from gateway.domain.errors import AdapterError, DeliveryRejected
from gateway.domain.files import safe_name
from gateway.domain.message import Attachment
from gateway.ports import Clock, Media

UPLOAD_SECONDS: Final = 80.0
LOOKS: Final = 5
LOOK_SECONDS: Final = 0.5
"""Slack makes the message of a file a moment after it says that it has it."""
OK: Final = 200


class Uploads:
    """The uploads of one account."""

    def __init__(self, client: Client, media: Media, clock: Clock) -> None:
        self._client = client
        self._media = media
        self._clock = clock

    async def share(
        self,
        files: Sequence[Attachment],
        *,
        channel: str,
        thread: str | None,
        comment: str | None,
    ) -> str:
        """Put files into a channel as one message; return its id, or a file's when that is not told.

        Raises:
            DeliveryRejected: A file is not kept any more, or not taken.
            AdapterError: As `translate` says.
        """
        ids = [await self._upload(file) for file in files]
        return await self._complete(ids, channel=channel, thread=thread, comment=comment)

    async def share_text(
        self, data: bytes, name: str, *, channel: str, thread: str | None, comment: str | None
    ) -> str:
        """Put one small file into a channel; as `share`.

        Raises:
            AdapterError: As `translate` says.
        """
        number = await self._put(data, len(data), name)
        shared = [(number, name)]
        return await self._complete(shared, channel=channel, thread=thread, comment=comment)

    async def _upload(self, file: Attachment) -> tuple[str, str]:
        name = safe_name(file.name)
        try:
            path = self._media.path(file.key)
            size = (await asyncio.to_thread(path.stat)).st_size
            source = await asyncio.to_thread(path.open, "rb")
        except (OSError, ValueError) as error:
            raise DeliveryRejected(PLATFORM, f"{file.name} is not kept any more") from error
        with source:
            # Read while it is sent, never as a whole.
            return await self._put(source, size, name), name

    async def _put(self, data: bytes | BinaryIO, size: int, name: str) -> str:
        if not size:
            raise DeliveryRejected(PLATFORM, f"{name} is empty, and Slack takes no empty files")
        place = await self._client.ask("files.getUploadURLExternal", filename=name, length=size)
        wait = aiohttp.ClientTimeout(total=UPLOAD_SECONDS)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        try:
            async with self._client.session.post(
                str(place["upload_url"]), data=data, timeout=wait, headers=headers
            ) as answer:
                if answer.status != OK:
                    # Nobody sees a file before its upload is completed.
                    raise DeliveryRejected(PLATFORM, f"{name} was not taken ({answer.status})")
        except (aiohttp.ClientError, TimeoutError) as error:
            raise translate(error) from error
        return str(place["file_id"])

    async def _complete(
        self,
        files: Sequence[tuple[str, str]],
        *,
        channel: str,
        thread: str | None,
        comment: str | None,
    ) -> str:
        given = [{"id": number, "title": name} for number, name in files]
        await self._client.ask(
            "files.completeUploadExternal",
            files=json.dumps(given),
            channel_id=channel,
            thread_ts=thread,
            initial_comment=comment,
        )
        first = files[0][0]
        for _ in range(LOOKS):
            ts = await self._shared_at(first, channel)
            if ts:
                return ts
            await self._clock.sleep(LOOK_SECONDS)
        return first

    async def _shared_at(self, file: str, channel: str) -> str:
        try:
            answer = await self._client.ask("files.info", file=file)
        except AdapterError:
            # It is shared; only where is not known.
            return ""
        shares = cast("dict[str, Any]", answer.get("file", {}).get("shares") or {})
        found = [share for kind in shares.values() for share in kind.get(channel, [])]
        return str(found[0].get("ts") or "") if found else ""
