"""What a model is shown of files: pictures as pictures, texts as text, the rest by name and place."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from gateway.domain.errors import FileUnreadable
from gateway.domain.files import FileState, in_words
from gateway.domain.ids import MessageId
from gateway.domain.message import Attachment, AttachmentKind
from gateway.domain.model import Picture
from gateway.domain.text import fenced
from gateway.ports import Files, Media
from gateway.runtime.pictures import MAX_PICTURE_BYTES, picture_problem, picture_type

logger = logging.getLogger(__name__)

WAIT_SECONDS: Final = 300.0
MAX_TEXT_BYTES: Final = 100_000
"""Of one text file that is shown; the rest of it is named."""
MAX_TEXTS_BYTES: Final = 400_000
MAX_PICTURES: Final = 8
MAX_PICTURES_BYTES: Final = 12_000_000
"""Of all files of a turn's request, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFile:
    """One file in a message: `text` names it, with its contents where they are text."""

    text: str
    picture: Picture | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Files that were looked at: those of messages, and those of tools by their key."""

    of: Mapping[MessageId, tuple[ShownFile, ...]] = field(
        default_factory=dict[MessageId, tuple[ShownFile, ...]]
    )
    by_key: Mapping[str, ShownFile] = field(default_factory=dict[str, ShownFile])


NOTHING_SEEN: Final = Looked()


class Awaited(Protocol):
    """Who knows when files are here."""

    async def until_settled(self, messages: Sequence[MessageId]) -> None:
        """Return once every file of these messages is here, or never will be."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileViews:
    """Opens the view of each turn, which waits `patience` seconds for files that are on their way."""

    files: Files
    media: Media
    awaited: Awaited
    patience: float = WAIT_SECONDS

    def open(self, *, whole: bool) -> "FileView":
        """Return a view; not `whole`, files are named and none is opened."""
        return FileView(self.files, self.media, self.awaited, whole=whole, patience=self.patience)


class FileView:
    """The files of one turn; each is read once, as long as there is room for it."""

    def __init__(
        self, files: Files, media: Media, awaited: Awaited, *, whole: bool, patience: float
    ) -> None:
        self._patience = patience
        self._files = files
        self._media = media
        self._awaited = awaited
        self._whole = whole
        self._of: dict[MessageId, tuple[ShownFile, ...]] = {}
        self._by_key: dict[str, ShownFile] = {}
        self._texts = MAX_TEXTS_BYTES
        self._bytes = MAX_PICTURES_BYTES
        self._pictures = MAX_PICTURES
        self._of_tools: deque[str] = deque()

    @property
    def looked(self) -> Looked:
        """What was looked at so far."""
        return Looked(of=self._of, by_key=self._by_key)

    async def wait_for(self, messages: Sequence[MessageId]) -> None:
        """Look at the files of messages that are answered now, once they are here."""
        new = [message for message in messages if message not in self._of]
        if not new:
            return
        try:
            async with asyncio.timeout(self._patience):
                await self._awaited.until_settled(new)
        except TimeoutError:
            logger.warning("the turn goes on without files that are not here yet")
        found = await self._files.of(new)
        for message in reversed(new):
            await self.look_at(message, found.get(message, ()))

    async def look_at(self, message: MessageId, files: Sequence[Attachment]) -> None:
        """Look at the files of a message as they are."""
        if message not in self._of:
            self._of[message] = tuple([await self.file(file) for file in files])

    async def look_at_answer(self, file: Attachment) -> None:
        """Look at a picture that a tool gave; older ones of tools make room for it."""
        if file.key in self._by_key or not self._whole or file.kind is not AttachmentKind.IMAGE:
            return
        while self._of_tools and not self._has_room(file.size or 0):
            key = self._of_tools.popleft()
            seen = self._by_key[key].picture
            self._by_key[key] = replace(self._by_key[key], picture=None)
            self._pictures += 1
            self._bytes += 0 if seen is None else len(seen.data)
        if (await self.file(file)).picture is not None:
            self._of_tools.append(file.key)

    def _has_room(self, size: int) -> bool:
        return self._pictures > 0 and size <= self._bytes

    async def file(self, file: Attachment) -> ShownFile:
        """Return what is shown of a file."""
        if not file.key:
            return ShownFile(text=_named(file, _absence(file)))
        known = self._by_key.get(file.key)
        if known is None:
            known = self._by_key[file.key] = await self._opened(file)
        return known

    async def _opened(self, file: Attachment) -> ShownFile:
        where = f"kept at {self._media.path(file.key)}"
        if not self._whole:
            return ShownFile(text=_named(file))
        try:
            start = await self._media.read(file.key, limit=MAX_TEXT_BYTES + 1)
            kind = picture_type(start)
            if kind:
                return await self._picture(file, kind, where)
        except FileUnreadable:
            logger.warning("file %s is not where it is kept", file.id)
            return ShownFile(text=_named(file, "it is not there any more"))
        text = _text_in(start)
        if text is None or file.kind is AttachmentKind.IMAGE:
            return ShownFile(text=_named(file, where))
        if len(start) > self._texts:
            return ShownFile(text=_named(file, where, "no room to show it"))
        self._texts -= len(start)
        more = "" if len(start) <= MAX_TEXT_BYTES else f"its first {in_words(MAX_TEXT_BYTES)}:"
        return ShownFile(text=f"{_named(file, where, more)}\n{fenced(text)}")

    async def _picture(self, file: Attachment, kind: str, where: str) -> ShownFile:
        data = await self._media.read(file.key, limit=MAX_PICTURE_BYTES + 1)
        problem = picture_problem(data)
        if not problem and not self._has_room(len(data)):
            problem = "no room to show it"
        if problem:
            return ShownFile(text=_named(file, where, problem))
        self._pictures -= 1
        self._bytes -= len(data)
        return ShownFile(text=_named(file, where), picture=Picture(media_type=kind, data=data))


def named(file: Attachment) -> str:
    """Return the line that stands for a file nobody looked at."""
    return _named(file)


def _named(file: Attachment, *more: str) -> str:
    size = "" if file.size is None else in_words(file.size)
    about = ", ".join(part for part in (file.media_type, size, *more) if part)
    return f"[attached {file.kind}: {file.name or 'without a name'} ({about})]"


def _absence(file: Attachment) -> str:
    match file.state:
        case FileState.REFUSED | FileState.FAILED:
            return f"not available: {file.problem}"
        case FileState.PRUNED:
            return "no longer kept"
        case FileState.PENDING | FileState.STORED:
            return "not available yet"


def _text_in(data: bytes) -> str | None:
    """Return what a file says when it is text, by what is in it; None for anything else."""
    if b"\x00" in data:
        return None
    # The cut may go through a character.
    cut = data[:MAX_TEXT_BYTES]
    for end in range(4):
        try:
            return cut[: len(cut) - end].decode("utf-8-sig")
        except UnicodeDecodeError:
            if len(data) <= MAX_TEXT_BYTES:
                return None
    return None
