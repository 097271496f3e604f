"""What a chat shows that is no message of ours to keep: a reply while it is made, a mark on a message.

All of it gives way to what must be sent. In a private chat a reply is previewed by a draft, which
fades by itself and is gone with the next message; elsewhere by a silent message that is edited.
"""

import dataclasses
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from telegram import Bot, LinkPreviewOptions
from telegram import error as sdk
from telegram.constants import ChatAction

from adapters.telegram.errors import is_bad_markup, is_not_modified, translate
from adapters.telegram.ids import PLATFORM, SentIds, chat_id, is_private, thread_id
from adapters.telegram.markup import TelegramRenderer
from adapters.telegram.outbound import Shown, entities_of
from adapters.telegram.payload import Payload
from adapters.telegram.traffic import Traffic
from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.errors import DeliveryRejected
from gateway.domain.ids import Place
from gateway.domain.preview import Preview

logger = logging.getLogger(__name__)

WAITING: Final = "👀"
"""Telegram takes reactions from a fixed list only."""
_UNSEEN: Final = Part(kind=DeliveryKind.TEXT, body="…")

_NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)


class Signs:
    """Previews, reactions and the sign that somebody types, of one bot."""

    def __init__(self, bot: Bot, traffic: Traffic) -> None:
        self._bot = bot
        self._traffic = traffic
        self._renderer = TelegramRenderer()
        self._has_drafts = True

    def opening(self, preview: Preview) -> Part | None:
        """Return the silent message that stands for a reply; a private chat shows a draft instead."""
        if self._has_drafts and is_private(preview.place.chat):
            return None
        newest = self._newest(preview.text)
        payload = dataclasses.replace(Payload.from_json(newest.payload), silent=True)
        return dataclasses.replace(newest, payload=payload.to_json())

    def preview_wait(self, place: Place) -> float:
        """Return for how many seconds no preview may be shown in a chat."""
        return self._traffic.preview_wait(place.chat)

    async def show_preview(self, preview: Preview) -> None:
        """Show the newest piece of a reply, once without its looks when Telegram cannot take them.

        Raises:
            AdapterError: As `Streaming.show_preview` says.
        """
        part = self._newest(preview.text)
        entities = entities_of(Payload.from_json(part.payload).entities)
        shown = Shown(text=part.body, entities=entities)
        self._traffic.note_preview(preview.place.chat)
        with _in_our_words():
            try:
                await self._show(preview, shown)
            except sdk.BadRequest as error:
                if not (entities and is_bad_markup(error)):
                    raise
                await self._show(preview, shown.plain())

    async def show_typing(self, place: Place) -> None:
        """Show that an answer is being worked on, unless the chat is busy."""
        if not self._traffic.may_type(place.chat):
            return
        try:
            with self._traffic.calling(place.chat):
                await self._bot.send_chat_action(
                    chat_id(place), ChatAction.TYPING, message_thread_id=thread_id(place)
                )
        except sdk.TelegramError as error:
            logger.debug("typing could not be shown: %s", type(error).__name__)

    async def show_waiting(self, place: Place, native_id: str) -> bool:
        """Mark a person's message as one that is answered later."""
        if not (native_id.isdecimal() and self._traffic.has_room(place.chat)):
            return False
        try:
            with self._traffic.calling(place.chat):
                await self._bot.set_message_reaction(chat_id(place), int(native_id), WAITING)
        except sdk.TelegramError as error:
            logger.debug("a message could not be marked: %s", type(error).__name__)
            return False
        return True

    def _newest(self, markdown: str) -> Part:
        """Return the end of a text, as much as one message holds."""
        parts = self._renderer.text(markdown)
        return parts[-1] if parts else _UNSEEN

    async def _show(self, preview: Preview, shown: Shown) -> None:
        chat = chat_id(preview.place)
        with self._traffic.calling(preview.place.chat):
            if preview.message is not None:
                ids = SentIds.parse(preview.message)
                if ids is None:
                    raise DeliveryRejected(PLATFORM, "there is no message to edit")
                await self._bot.edit_message_text(
                    shown.text,
                    chat_id=chat,
                    message_id=ids.message,
                    entities=shown.entities,
                    link_preview_options=_NO_PREVIEW,
                )
                return
            try:
                await self._bot.send_message_draft(
                    int(chat),
                    preview.turn,
                    shown.text,
                    message_thread_id=thread_id(preview.place),
                    entities=shown.entities,
                )
            except sdk.InvalidToken as error:
                # So the library reads the answer of a server that does not know the method.
                self._has_drafts = False
                raise DeliveryRejected(PLATFORM, "this server knows no drafts") from error


@contextmanager
def _in_our_words() -> Generator[None]:
    """Raise our errors for the service's; what is shown so already is no failure."""
    try:
        yield
    except sdk.BadRequest as error:
        if not is_not_modified(error):
            raise translate(error) from error
    except sdk.TelegramError as error:
        raise translate(error) from error
