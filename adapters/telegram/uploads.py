"""Sends files from the media folder: as what they are where Telegram takes that, else as documents."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

from telegram import (
    Bot,
    InputFile,
    InputMediaDocument,
    InputMediaPhoto,
    Message,
    MessageEntity,
    ReplyParameters,
)

from adapters.telegram.ids import PLATFORM
from gateway.domain.errors import DeliveryRejected
from gateway.domain.files import safe_name
from gateway.domain.message import Attachment, AttachmentKind
from gateway.ports import Media

READ_SECONDS: Final = 60.0
"""For an answer: Telegram looks at what it got before it says so."""


class Upload:
    """The files of one delivery, open while the block lasts; each try reads them from the start."""

    def __init__(self, bot: Bot, media: Media, files: Sequence[Attachment]) -> None:
        self._bot = bot
        self._media = media
        self._files = files
        self.as_documents = False
        """Whether they go as files alone; set when Telegram does not take them for what they are."""

    @property
    def has_other_way(self) -> bool:
        """Whether it may still be tried as documents."""
        return not self.as_documents and self._files[0].kind is not AttachmentKind.FILE

    async def send(
        self,
        chat: int | str,
        *,
        caption: str,
        entities: Sequence[MessageEntity],
        thread: int | None,
        quote: ReplyParameters | None,
    ) -> tuple[Message, ...]:
        """Send them as one message, or as one album.

        Raises:
            DeliveryRejected: A file is not kept any more.
            TelegramError: The library's own.
        """
        common: dict[str, Any] = {
            "message_thread_id": thread,
            "reply_parameters": quote,
            "read_timeout": READ_SECONDS,
        }
        with ExitStack() as stack:
            inputs = [await self._open(file, stack) for file in self._files]
            if len(inputs) > 1:
                make = InputMediaDocument if self.as_documents else InputMediaPhoto
                first = make(inputs[0], caption=caption or None, caption_entities=entities)
                rest = [make(each) for each in inputs[1:]]
                return await self._bot.send_media_group(chat, [first, *rest], **common)
            common |= {"caption": caption or None, "caption_entities": entities}
            return (await self._send_one(chat, inputs[0], common),)

    async def _send_one(self, chat: int | str, file: InputFile, common: dict[str, Any]) -> Message:
        kind = AttachmentKind.FILE if self.as_documents else self._files[0].kind
        match kind:
            case AttachmentKind.IMAGE:
                return await self._bot.send_photo(chat, file, **common)
            case AttachmentKind.VOICE:
                return await self._bot.send_voice(chat, file, **common)
            case AttachmentKind.AUDIO:
                return await self._bot.send_audio(chat, file, **common)
            case AttachmentKind.VIDEO:
                return await self._bot.send_video(chat, file, **common)
            case AttachmentKind.FILE:
                return await self._bot.send_document(chat, file, **common)

    async def _open(self, file: Attachment, stack: ExitStack) -> InputFile:
        try:
            source = await asyncio.to_thread(self._media.path(file.key).open, "rb")
        except (OSError, ValueError) as error:
            raise DeliveryRejected(PLATFORM, f"{file.name} is not kept any more") from error
        stack.enter_context(source)
        # Read while it is sent, never as a whole.
        return InputFile(
            source,
            filename=safe_name(file.name),
            attach=len(self._files) > 1,
            read_file_handle=False,
        )
