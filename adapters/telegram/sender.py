"""Makes the calls that put something into a chat, and says in our words what came of them."""

import logging
from contextlib import AbstractContextManager
from typing import Final, TypeVar

from telegram import Bot, InputFile, LinkPreviewOptions, Message, ReplyParameters
from telegram import error as sdk

from adapters.telegram.config import ReplyTo
from adapters.telegram.errors import (
    is_bad_markup,
    is_gone,
    is_lost_topic,
    is_not_modified,
    retry_seconds,
    translate,
)
from adapters.telegram.feeding import MoveChat
from adapters.telegram.forms import Ask
from adapters.telegram.ids import PLATFORM, SentIds, chat_id, thread_id
from adapters.telegram.inbound import Migration
from adapters.telegram.outbound import caption_of, prompt_of, quotes, quoting, shown_of
from adapters.telegram.payload import Payload
from adapters.telegram.sentcards import SentCards
from adapters.telegram.traffic import Traffic
from adapters.telegram.uploads import Upload
from gateway.domain.delivery import Delivery, DeliveryKind, Mark, Receipt
from gateway.domain.errors import DeliveryDeferred, DeliveryRejected
from gateway.domain.ids import Place
from gateway.domain.text import shorten
from gateway.ports import Clock, Media
from gateway.ports.reading import SentMessages

logger = logging.getLogger(__name__)

MAX_TOAST: Final = 200
PROMPT_WAIT_SECONDS: Final = 5.0
"""How long a prompt waits for its turn in a busy chat; the card takes a reply without it."""

_NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)

Value = TypeVar("Value")


class Sender:
    """Sends, edits and answers for one bot."""

    def __init__(
        self,
        bot: Bot,
        *,
        media: Media,
        traffic: Traffic,
        cards: SentCards,
        store: SentMessages,
        move_chat: MoveChat,
        clock: Clock,
        reply_to: ReplyTo,
    ) -> None:
        self._bot = bot
        self._media = media
        self._traffic = traffic
        self._cards = cards
        self._store = store
        self._move_chat = move_chat
        self._clock = clock
        self._reply_to = reply_to

    async def send(self, delivery: Delivery) -> Receipt:
        """Deliver one text, card, file or edit.

        Raises:
            AdapterError: As `Adapter.send` says.
        """
        chat = delivery.place.chat
        wait = self._traffic.wait(chat)
        if wait:
            raise DeliveryDeferred(PLATFORM, wait)
        payload = Payload.from_json(delivery.payload)
        try:
            match delivery.kind:
                case DeliveryKind.TEXT:
                    ids, marks = await self._text(delivery, payload)
                case DeliveryKind.CARD:
                    with self._cards.sending(chat):
                        ids, marks = await self._card(delivery, payload)
                case DeliveryKind.FILE:
                    ids, marks = await self._file(delivery, payload)
                case DeliveryKind.EDIT:
                    ids, marks = await self._edit(delivery, payload)
        except sdk.ChatMigrated as error:
            await self._move_chat(Migration(old=chat, new=str(error.new_chat_id)))
            raise DeliveryDeferred(PLATFORM, 0.0) from error
        except sdk.TelegramError as error:
            raise translate(error) from error
        return Receipt(native_id=str(ids), marks=marks)

    async def probe(self, delivery: Delivery, message: int, *, formatted: bool) -> Message | bool:
        """Edit a message to what a delivery says; for finding out whether it is that one."""
        payload = Payload.from_json(delivery.payload)
        chat = chat_id(delivery.place)
        with self._noting(delivery.place.chat):
            if delivery.kind is DeliveryKind.FILE and not delivery.files:
                caption = caption_of(payload, delivery.marks)
                return await self._bot.edit_message_caption(
                    chat_id=chat, message_id=message, caption=caption
                )
            shown = shown_of(delivery, payload, marks=delivery.marks)
            if delivery.files:
                return await self._bot.edit_message_caption(
                    chat_id=chat,
                    message_id=message,
                    caption=shown.text or None,
                    caption_entities=shown.entities if formatted else (),
                )
            return await self._bot.edit_message_text(
                shown.text,
                chat_id=chat,
                message_id=message,
                entities=shown.entities if formatted else (),
                reply_markup=shown.keyboard,
                link_preview_options=_NO_PREVIEW,
            )

    async def answer(self, interaction: str, text: str) -> None:
        """Answer a press; a failure is only noted, since the decision stands without it."""
        try:
            await self._bot.answer_callback_query(
                interaction, text=shorten(text, MAX_TOAST) or None
            )
        except sdk.TelegramError as error:
            logger.debug("a press could not be answered: %s", type(error).__name__)

    # --- kinds --------------------------------------------------------------------------

    async def _text(self, delivery: Delivery, payload: Payload) -> tuple[SentIds, frozenset[Mark]]:
        quote = await self._quote(delivery, payload)
        if payload.silent:
            self._traffic.note_preview(delivery.place.chat)
        message, marks = await self._message(delivery, payload, quote=quote)
        return SentIds(message=message.message_id), marks

    async def _card(self, delivery: Delivery, payload: Payload) -> tuple[SentIds, frozenset[Mark]]:
        message, marks = await self._message(delivery, payload)
        ids = SentIds(message=message.message_id)
        if payload.ask is not None:
            ids = SentIds(
                message=ids.message, prompt=await self._prompt(delivery.place, payload.ask, ids)
            )
        self._cards.note(delivery, ids)
        return ids, marks

    async def _message(
        self, delivery: Delivery, payload: Payload, *, quote: ReplyParameters | None = None
    ) -> tuple[Message, frozenset[Mark]]:
        """Send a text; once without its looks or its topic when Telegram cannot take those."""
        marks = frozenset[Mark]()
        while True:
            shown = shown_of(delivery, payload, marks=delivery.marks | marks)
            if Mark.PLAIN in marks:
                shown = shown.plain()
            thread = None if Mark.MOVED in marks else thread_id(delivery.place)
            try:
                with self._noting(delivery.place.chat):
                    message = await self._bot.send_message(
                        chat_id(delivery.place),
                        shown.text,
                        entities=shown.entities,
                        message_thread_id=thread,
                        reply_markup=shown.keyboard,
                        reply_parameters=quote,
                        link_preview_options=_NO_PREVIEW,
                        disable_notification=payload.silent or None,
                    )
            except sdk.BadRequest as error:
                mark = _second_way(error, payload, shown.entities, thread)
                if mark is None or mark in marks:
                    raise
                logger.warning("delivery %d is sent again, %s: %s", delivery.id, mark, error)
                marks |= {mark}
                continue
            return message, marks

    async def _prompt(self, place: Place, ask: Ask, card: SentIds) -> int | None:
        """Open the reply field below a card; without it a reply to the card does."""
        shown, field = prompt_of(ask, place)

        async def send() -> Message:
            with self._noting(place.chat):
                return await self._bot.send_message(
                    chat_id(place),
                    shown.text,
                    entities=shown.entities,
                    message_thread_id=thread_id(place),
                    reply_markup=field,
                    reply_parameters=quoting(str(card.message)),
                    disable_notification=True,
                )

        try:
            try:
                message = await send()
            except sdk.RetryAfter as error:
                seconds = retry_seconds(error)
                if seconds > PROMPT_WAIT_SECONDS:
                    raise
                await self._clock.sleep(seconds)
                message = await send()
        except sdk.TelegramError as error:
            logger.warning("a card is shown without its prompt: %s", type(error).__name__)
            return None
        return message.message_id

    async def _file(self, delivery: Delivery, payload: Payload) -> tuple[SentIds, frozenset[Mark]]:
        if delivery.files:
            return await self._files(delivery, payload)
        with self._noting(delivery.place.chat):
            message = await self._bot.send_document(
                chat_id(delivery.place),
                InputFile(delivery.body.encode("utf-8", "replace"), filename=payload.name),
                caption=caption_of(payload, delivery.marks),
                message_thread_id=thread_id(delivery.place),
            )
        return SentIds(message=message.message_id), frozenset()

    async def _files(self, delivery: Delivery, payload: Payload) -> tuple[SentIds, frozenset[Mark]]:
        """Send files; once without its looks, its topic or what they are, when one is not taken."""
        upload = Upload(self._bot, self._media, delivery.files)
        quote = await self._quote(delivery, payload) if delivery.body else None
        marks = frozenset[Mark]()
        while True:
            shown = shown_of(delivery, payload, marks=delivery.marks | marks)
            if Mark.PLAIN in marks:
                shown = shown.plain()
            thread = None if Mark.MOVED in marks else thread_id(delivery.place)
            try:
                with self._noting(delivery.place.chat):
                    messages = await upload.send(
                        chat_id(delivery.place),
                        caption=shown.text,
                        entities=shown.entities,
                        thread=thread,
                        quote=quote,
                    )
            except sdk.BadRequest as error:
                mark = _second_way(error, payload, shown.entities, thread)
                if mark is not None and mark not in marks:
                    marks |= {mark}
                elif upload.has_other_way:
                    upload.as_documents = True
                else:
                    raise
                logger.warning("delivery %d is sent another way: %s", delivery.id, error)
                continue
            first, *rest = (message.message_id for message in messages)
            return SentIds(message=first, more=tuple(rest)), marks

    async def _quote(self, delivery: Delivery, payload: Payload) -> ReplyParameters | None:
        if not quotes(self._reply_to, payload):
            return None
        return quoting(await self._store.answered(delivery.id))

    async def _edit(self, delivery: Delivery, payload: Payload) -> tuple[SentIds, frozenset[Mark]]:
        ids = SentIds.parse(delivery.edits or "")
        if ids is None:
            raise DeliveryRejected(PLATFORM, "there is no message to edit")
        if not delivery.body:
            await self._remove(delivery, ids)
            return ids, frozenset()
        shown = shown_of(delivery, payload, marks=frozenset())
        marks = frozenset[Mark]()
        while True:
            try:
                with self._noting(delivery.place.chat):
                    await self._bot.edit_message_text(
                        shown.text,
                        chat_id=chat_id(delivery.place),
                        message_id=ids.message,
                        entities=shown.entities,
                        reply_markup=shown.keyboard,
                        link_preview_options=_NO_PREVIEW,
                    )
            except sdk.BadRequest as error:
                if is_not_modified(error):
                    return ids, marks
                if not (shown.entities and is_bad_markup(error)):
                    raise
                shown, marks = shown.plain(), frozenset({Mark.PLAIN})
                continue
            return ids, marks

    async def _remove(self, delivery: Delivery, ids: SentIds) -> None:
        """Take a message away; one that is gone already is what was wanted."""
        try:
            with self._noting(delivery.place.chat):
                await self._bot.delete_message(chat_id(delivery.place), ids.message)
        except sdk.BadRequest as error:
            if not is_gone(error):
                raise

    def _noting(self, chat: str) -> AbstractContextManager[None]:
        return self._traffic.calling(chat)


def _second_way(
    error: sdk.BadRequest, payload: Payload, entities: object, thread: int | None
) -> Mark | None:
    """Return how a refused message may be sent instead; what belongs to a question never moves."""
    if entities and is_bad_markup(error):
        return Mark.PLAIN
    if thread is not None and is_lost_topic(error) and not payload.bound:
        return Mark.MOVED
    return None
