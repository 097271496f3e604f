"""Makes the calls that put something into a chat, and says in our words what came of them."""

import logging
from typing import Final

from adapters.slack.client import Client
from adapters.slack.errors import Refused
from adapters.slack.ids import PLATFORM, is_person, is_ts, thread_of
from adapters.slack.markdown import escape
from adapters.slack.outbound import comment_of, metadata_of, shown_of
from adapters.slack.payload import Payload
from adapters.slack.streams import StreamMessages
from adapters.slack.traffic import Traffic
from adapters.slack.uploads import Uploads
from gateway.domain.delivery import Delivery, DeliveryKind, Mark, Receipt
from gateway.domain.errors import AdapterError, DeliveryRejected
from gateway.domain.ids import Place
from gateway.domain.text import shorten

logger = logging.getLogger(__name__)

MAX_WHISPER: Final = 2_000
_NO_PREVIEW: Final = {"unfurl_links": False, "unfurl_media": False}
_GONE: Final = frozenset(("message_not_found", "cant_delete_message"))
_LOST_THREAD: Final = frozenset(("thread_not_found", "cannot_reply_to_message"))


class Sender:
    """Sends, edits and answers for one account."""

    def __init__(
        self, client: Client, *, traffic: Traffic, uploads: Uploads, streams: StreamMessages
    ) -> None:
        self._client = client
        self._traffic = traffic
        self._uploads = uploads
        self._streams = streams
        self._opened: dict[str, str] = {}

    async def send(self, delivery: Delivery) -> Receipt:
        """Deliver one text, card, file or edit.

        Raises:
            AdapterError: As `Adapter.send` says.
        """
        payload = Payload.from_json(delivery.payload)
        with self._traffic.calling(delivery.place.chat):
            chat = await self.channel(delivery.place)
            match delivery.kind:
                case DeliveryKind.TEXT | DeliveryKind.CARD:
                    return await self._message(delivery, payload, chat)
                case DeliveryKind.FILE:
                    return await self._file(delivery, payload, chat)
                case DeliveryKind.EDIT:
                    return await self._edit(delivery, payload, chat)

    async def channel(self, place: Place) -> str:
        """Return the channel of a place; the one with a person is opened first.

        Raises:
            AdapterError: It cannot be opened.
        """
        if not is_person(place.chat):
            return place.chat
        if place.chat not in self._opened:
            answer = await self._client.post("conversations.open", users=place.chat)
            self._opened[place.chat] = str(answer["channel"]["id"])
        return self._opened[place.chat]

    async def whisper(self, place: Place, person: str, text: str) -> None:
        """Tell one person alone; a failure is only noted, since what was decided stands."""
        if not text:
            # The press was acknowledged when it was stored.
            return
        try:
            await self._client.post(
                "chat.postEphemeral",
                channel=place.chat,
                user=person,
                thread_ts=thread_of(place),
                text=shorten(escape(text), MAX_WHISPER),
            )
        except AdapterError as error:
            logger.debug("a press could not be answered: %s", error)

    # --- kinds --------------------------------------------------------------------------

    async def _message(self, delivery: Delivery, payload: Payload, chat: str) -> Receipt:
        """Send a text; once without its looks or its thread when Slack cannot take those."""
        if payload.silent:
            self._traffic.note_preview(delivery.place.chat)
            started = await self._streams.start(delivery, chat)
            if started is not None:
                return Receipt(native_id=started)
        marks = frozenset[Mark]()
        while True:
            shown = shown_of(delivery, payload, marks=delivery.marks | marks)
            thread = None if Mark.MOVED in marks else thread_of(delivery.place)
            try:
                answer = await self._client.post(
                    "chat.postMessage",
                    channel=chat,
                    thread_ts=thread,
                    metadata=metadata_of(delivery),
                    **shown,
                    **_NO_PREVIEW,
                )
            except Refused as error:
                mark = _second_way(error, payload, thread)
                if mark is None or mark in marks:
                    raise
                logger.warning("delivery %d is sent again, %s: %s", delivery.id, mark, error)
                marks |= {mark}
                continue
            return Receipt(native_id=str(answer["ts"]), marks=marks)

    async def _file(self, delivery: Delivery, payload: Payload, chat: str) -> Receipt:
        comment = comment_of(delivery, payload, marks=delivery.marks)
        thread = thread_of(delivery.place)
        if delivery.files:
            native = await self._uploads.share(
                delivery.files, channel=chat, thread=thread, comment=comment
            )
        else:
            data = delivery.body.encode("utf-8", "replace")
            native = await self._uploads.share_text(
                data, payload.name, channel=chat, thread=thread, comment=comment
            )
        return Receipt(native_id=native)

    async def _edit(self, delivery: Delivery, payload: Payload, chat: str) -> Receipt:
        ts = delivery.edits or ""
        if not is_ts(ts):
            raise DeliveryRejected(PLATFORM, "there is no message to edit")
        if not delivery.body:
            await self._remove(chat, ts)
            return Receipt(native_id=ts)
        marks = frozenset[Mark]()
        while True:
            shown = shown_of(delivery, payload, marks=marks)
            try:
                await self._client.post("chat.update", channel=chat, ts=ts, **shown)
            except Refused as error:
                if not error.is_markup or marks:
                    raise
                marks = frozenset({Mark.PLAIN})
                continue
            return Receipt(native_id=ts, marks=marks)

    async def _remove(self, chat: str, ts: str) -> None:
        """Take a message away; one that is gone already is what was wanted."""
        await self._streams.stop(chat, ts)
        try:
            await self._client.post("chat.delete", channel=chat, ts=ts)
        except Refused as error:
            if error.code not in _GONE:
                raise


def _second_way(error: Refused, payload: Payload, thread: str | None) -> Mark | None:
    """Return how a refused message may be sent instead; what belongs to a question never moves."""
    if error.is_markup and payload.blocks:
        return Mark.PLAIN
    if thread is not None and error.code in _LOST_THREAD and not payload.bound:
        return Mark.MOVED
    return None
