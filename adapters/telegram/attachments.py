"""The files of a message, and words for what is neither text nor file. Pure."""

from typing import Final

from telegram import Message

from gateway.domain.message import Attachment, AttachmentKind

_OCTETS: Final = "application/octet-stream"


def attachments_of(message: Message) -> tuple[Attachment, ...]:
    """Return the files of a message; `ref` is what `getFile` takes."""
    found = _photo(message) or _document(message) or _sound(message) or _moving(message)
    return (found,) if found else ()


def words_of(message: Message) -> str:
    """Return in words what a message shows that is no text, "" when there is nothing to say."""
    if message.location is not None:
        spot = message.location
        name = f"{message.venue.title}, " if message.venue else ""
        return f"[location: {name}{spot.latitude}, {spot.longitude}]"
    if message.contact is not None:
        contact = message.contact
        name = " ".join(filter(None, (contact.first_name, contact.last_name)))
        return f"[contact: {name}, {contact.phone_number}]"
    if message.poll is not None:
        options = "; ".join(option.text for option in message.poll.options)
        return f"[poll: {message.poll.question} ({options})]"
    if message.dice is not None:
        return f"[{message.dice.emoji} {message.dice.value}]"
    if message.sticker is not None:
        return f"[sticker {message.sticker.emoji or ''}]".replace(" ]", "]")
    return ""


def _photo(message: Message) -> Attachment | None:
    if not message.photo:
        return None
    largest = max(message.photo, key=lambda size: size.width * size.height)
    return Attachment(
        kind=AttachmentKind.IMAGE,
        media_type="image/jpeg",
        name=f"photo-{largest.file_unique_id}.jpg",
        size=largest.file_size,
        ref=largest.file_id,
    )


def _document(message: Message) -> Attachment | None:
    # An animation is also told as a document, for programs that know none.
    document = None if message.animation else message.document
    if document is None:
        return None
    media_type = document.mime_type or _OCTETS
    return Attachment(
        kind=AttachmentKind.IMAGE if media_type.startswith("image/") else AttachmentKind.FILE,
        media_type=media_type,
        name=document.file_name or f"file-{document.file_unique_id}",
        size=document.file_size,
        ref=document.file_id,
    )


def _sound(message: Message) -> Attachment | None:
    if message.voice is not None:
        voice = message.voice
        return Attachment(
            kind=AttachmentKind.VOICE,
            media_type=voice.mime_type or "audio/ogg",
            name=f"voice-{voice.file_unique_id}.ogg",
            size=voice.file_size,
            ref=voice.file_id,
        )
    if message.audio is None:
        return None
    audio = message.audio
    return Attachment(
        kind=AttachmentKind.AUDIO,
        media_type=audio.mime_type or "audio/mpeg",
        name=audio.file_name or f"audio-{audio.file_unique_id}",
        size=audio.file_size,
        ref=audio.file_id,
    )


def _moving(message: Message) -> Attachment | None:
    if message.video_note is not None:
        note = message.video_note
        return Attachment(
            kind=AttachmentKind.VIDEO,
            media_type="video/mp4",
            name=f"video-{note.file_unique_id}.mp4",
            size=note.file_size,
            ref=note.file_id,
        )
    video = message.video or message.animation
    if video is None:
        return None
    return Attachment(
        kind=AttachmentKind.VIDEO,
        media_type=video.mime_type or "video/mp4",
        name=video.file_name or f"video-{video.file_unique_id}.mp4",
        size=video.file_size,
        ref=video.file_id,
    )
