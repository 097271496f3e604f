"""What a chat shows that is no message of ours to keep: a growing reply, a status, a mark on a message.

All of it gives way to what must be sent.
"""

import dataclasses
import logging
from typing import Final

from adapters.slack.client import Client
from adapters.slack.errors import Refused
from adapters.slack.ids import PLATFORM, is_ts, thread_of
from adapters.slack.markup import SlackRenderer
from adapters.slack.payload import Payload
from adapters.slack.streams import StreamMessages
from adapters.slack.traffic import Traffic
from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.errors import AdapterError, DeliveryRejected
from gateway.domain.ids import Place
from gateway.domain.preview import Preview

logger = logging.getLogger(__name__)

WAITING: Final = "eyes"
THINKING: Final = "is thinking…"
_UNSEEN: Final = Part(kind=DeliveryKind.TEXT, body="…")


class Signs:
    """Previews, statuses and reactions of one account."""

    def __init__(self, client: Client, traffic: Traffic, streams: StreamMessages) -> None:
        self._client = client
        self._traffic = traffic
        self._streams = streams
        self._renderer = SlackRenderer()
        self._has_status = True

    def opening(self, preview: Preview) -> Part:
        """Return the message that stands for a reply while it is made."""
        if thread_of(preview.place) is not None:
            # What a stream said cannot be changed, so it begins with the beginning.
            return Part(
                kind=DeliveryKind.TEXT, body=preview.text, payload=Payload(silent=True).to_json()
            )
        newest = self._newest(preview.text)
        payload = dataclasses.replace(Payload.from_json(newest.payload), silent=True)
        return dataclasses.replace(newest, payload=payload.to_json())

    def preview_wait(self, place: Place) -> float:
        """Return for how many seconds no preview may be shown in a chat."""
        return self._traffic.preview_wait(place.chat)

    async def show_preview(self, preview: Preview) -> None:
        """Show the newest of a reply.

        Raises:
            AdapterError: As `Streaming.show_preview` says.
        """
        chat, ts = preview.place.chat, preview.message or ""
        if not is_ts(ts):
            raise DeliveryRejected(PLATFORM, "there is no message to edit")
        self._traffic.note_preview(chat)
        with self._traffic.calling(chat):
            if self._streams.is_open(chat, ts):
                await self._streams.append(chat, ts, preview.text)
                return
            newest = Payload.from_json(self._newest(preview.text).payload)
            await self._client.post(
                "chat.update",
                channel=chat,
                ts=ts,
                text=newest.text or _UNSEEN.body,
                blocks=list(newest.blocks),
            )

    async def show_waiting(self, place: Place, native_id: str) -> bool:
        """Mark a person's message as one that is answered later."""
        if not (is_ts(native_id) and self._traffic.has_room(place.chat)):
            return False
        try:
            with self._traffic.calling(place.chat):
                await self._client.post(
                    "reactions.add", channel=place.chat, timestamp=native_id, name=WAITING
                )
        except Refused as error:
            return error.code == "already_reacted"
        except AdapterError as error:
            logger.debug("a message could not be marked: %s", error)
            return False
        return True

    async def show_typing(self, place: Place) -> None:
        """Show in a thread that an answer is being worked on; elsewhere Slack has nothing for it."""
        thread = thread_of(place)
        if thread is None or not self._has_status:
            return
        if not self._traffic.may_show_status(place.chat, thread):
            return
        try:
            with self._traffic.calling(place.chat):
                await self._client.post(
                    "assistant.threads.setStatus",
                    channel_id=place.chat,
                    thread_ts=thread,
                    status=THINKING,
                )
        except Refused as error:
            # An app that is no assistant is told so once.
            self._has_status = error.code not in ("missing_scope", "unknown_method")
            logger.debug("a status could not be shown: %s", error)
        except AdapterError as error:
            logger.debug("a status could not be shown: %s", error)

    def _newest(self, markdown: str) -> Part:
        """Return the end of a text, as much as one message holds."""
        parts = self._renderer.text(markdown)
        return parts[-1] if parts else _UNSEEN
