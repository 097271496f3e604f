"""Files that go out: they are kept first, then sent with the text as the platform takes them."""

import mimetypes
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path, PurePath
from typing import Final

from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.errors import FileError, FileTooLarge, FileUnwritable
from gateway.domain.files import FileLimits, FileState, file_key, in_words, listed, safe_name
from gateway.domain.message import Attachment, AttachmentKind
from gateway.domain.tools import ToolFile
from gateway.ports import Media, Renderer

MAX_FILES: Final = 10
"""Of one message."""
LOCAL_FILE_BYTES: Final = 100_000_000
"""Of a file that people on this machine are told of."""
PREFIX: Final = "out"

_VOICE: Final = frozenset({"audio/ogg", "audio/opus"})
_KINDS: Final = {
    "image": AttachmentKind.IMAGE,
    "audio": AttachmentKind.AUDIO,
    "video": AttachmentKind.VIDEO,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotTaken:
    """A file that is not sent, by a code of the control API, and why in one sentence."""

    code: str
    sentence: str


async def take_files(
    paths: Sequence[str], *, media: Media, platform: str, limits: FileLimits | None
) -> tuple[Attachment, ...] | NotTaken:
    """Copy the files somebody named into the media folder: all, or none and why.

    What is kept stays as it was named, whatever becomes of the original.
    """
    if len(paths) > MAX_FILES:
        return NotTaken(
            code="too_large", sentence=f"a message has at most {MAX_FILES} files; nothing was sent"
        )
    limit = LOCAL_FILE_BYTES if limits is None else limits.file
    taken: list[Attachment] = []
    for path in paths:
        try:
            taken.append(await _copied(path, media=media, limit=limit))
        except FileError as error:
            await media.remove([file.key for file in taken])
            return _refusal(error, safe_name(path), platform)
    return tuple(taken)


async def keep_tool_files(
    files: Sequence[ToolFile], *, media: Media
) -> tuple[tuple[Attachment, ...], tuple[str, ...]]:
    """Keep what a call gave; return what goes to the chat, and what the model is told of all.

    A file that cannot be kept never loses the result of a call that has run.
    """
    kept: list[Attachment] = []
    notes: list[str] = []
    for file in files:
        name = safe_name(file.name, default=f"{file.kind}{_extension(file.media_type)}")
        try:
            found = await _kept(file, name, media=media)
        except FileError as error:
            notes.append(f"({name} is not kept: {error})")
            continue
        if file.for_chat:
            kept.append(found)
        else:
            notes.append(f"(the whole is kept at {media.path(found.key)})")
    if kept:
        names = listed([file.name for file in kept])
        notes.append(f"({names}: goes to the chat with your reply)")
    return tuple(kept), tuple(notes)


def reply_files(files: Iterable[Attachment]) -> tuple[Attachment, ...]:
    """Return the files that go with a reply: the newest that tools gave, each once."""
    by_contents: dict[str, Attachment] = {}
    for file in files:
        by_contents.setdefault(file.sha256, file)
    return tuple(by_contents.values())[-MAX_FILES:]


def kind_of(media_type: str) -> AttachmentKind:
    """Return what a file is to people, by its media type."""
    if media_type in _VOICE:
        return AttachmentKind.VOICE
    return _KINDS.get(media_type.partition("/")[0], AttachmentKind.FILE)


def parts_of(
    text: str, files: Sequence[Attachment], *, renderer: Renderer, where: Callable[[str], Path]
) -> tuple[Part, ...]:
    """Return the messages of a text with files; a short text goes with the first of them.

    Where the platform takes no files, people are told where (`where`, by key) they are kept.
    """
    limits = renderer.capabilities.files
    if limits is None:
        lines = [
            f"(file {file.name}, {in_words(file.size or 0)}: {where(file.key)})" for file in files
        ]
        return renderer.text("\n\n".join((text, *lines) if text.strip() else lines))
    large = [file for file in files if (file.size or 0) > limits.file]
    lines = [f"({file.name} is not sent: {FileTooLarge(limits.file, file.size)})" for file in large]
    files = [file for file in files if file not in large]
    parts = renderer.text("\n\n".join((text, *lines) if text.strip() else lines))
    groups = _together([_as_sent(file, limits) for file in files], limits)
    sent = [Part(kind=DeliveryKind.FILE, body="", files=group) for group in groups]
    if sent and len(parts) == 1 and _units(parts[0].body) <= limits.caption:
        sent[0] = replace(sent[0], body=parts[0].body, payload=parts[0].payload)
        parts = ()
    return (*parts, *sent)


async def _copied(path: str, *, media: Media, limit: int) -> Attachment:
    name = safe_name(PurePath(path).name)
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    kept = await media.copy(path, key=file_key(PREFIX, secrets.token_hex(12), name), limit=limit)
    return Attachment(
        kind=kind_of(media_type),
        media_type=media_type,
        name=name,
        size=kept.size,
        state=FileState.STORED,
        key=kept.key,
        sha256=kept.sha256,
    )


async def _kept(file: ToolFile, name: str, *, media: Media) -> Attachment:
    async def whole() -> AsyncIterator[bytes]:
        yield file.data

    key = file_key(PREFIX, secrets.token_hex(12), name)
    kept = await media.keep(whole(), key=key, limit=max(len(file.data), 1))
    return Attachment(
        kind=file.kind,
        media_type=file.media_type,
        name=name,
        size=kept.size,
        state=FileState.STORED,
        key=kept.key,
        sha256=kept.sha256,
    )


def _extension(media_type: str) -> str:
    return mimetypes.guess_extension(media_type) or ""


def _as_sent(file: Attachment, limits: FileLimits) -> Attachment:
    shown = file.media_type in limits.images and (file.size or 0) <= limits.image
    if file.kind is AttachmentKind.IMAGE and not shown:
        return replace(file, kind=AttachmentKind.FILE)
    return file


def _together(files: Sequence[Attachment], limits: FileLimits) -> list[tuple[Attachment, ...]]:
    """Return the files of each message: pictures that follow one another are an album."""
    groups: list[tuple[Attachment, ...]] = []
    for is_image, run in groupby(files, key=lambda file: file.kind is AttachmentKind.IMAGE):
        found = tuple(run)
        step = limits.album if is_image else 1
        groups += [found[start : start + step] for start in range(0, len(found), step)]
    return groups


def _refusal(error: FileError, name: str, platform: str) -> NotTaken:
    match error:
        case FileTooLarge():
            sentence = f"{name} cannot be sent to {platform}: {error}; nothing was sent"
            return NotTaken(code="too_large", sentence=sentence)
        case FileUnwritable():
            sentence = f"{name} was not sent: {error}"
            return NotTaken(code="store_unavailable", sentence=sentence)
        case _:
            return NotTaken(code="invalid_arguments", sentence=f"{error}; nothing was sent")


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
