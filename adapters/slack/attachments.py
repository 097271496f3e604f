"""The files of a message. Pure."""

from collections.abc import Mapping
from typing import Any, Final, cast

from gateway.domain.message import Attachment, AttachmentKind

_OCTETS: Final = "application/octet-stream"
_GONE: Final = frozenset({"tombstone", "hidden_by_limit"})
_KINDS: Final = {
    "image": AttachmentKind.IMAGE,
    "audio": AttachmentKind.AUDIO,
    "video": AttachmentKind.VIDEO,
}


def attachments_of(message: Mapping[str, Any]) -> tuple[Attachment, ...]:
    """Return the files of a message; `ref` is Slack's id of each."""
    files = cast("list[Mapping[str, Any]]", message.get("files") or [])
    return tuple(_file(file) for file in files if file.get("mode") not in _GONE and file.get("id"))


def _file(file: Mapping[str, Any]) -> Attachment:
    media_type = str(file.get("mimetype") or _OCTETS)
    kind = _KINDS.get(media_type.partition("/")[0], AttachmentKind.FILE)
    if str(file.get("subtype") or "") == "slack_audio":
        kind = AttachmentKind.VOICE
    size = file.get("size")
    return Attachment(
        kind=kind,
        media_type=media_type,
        name=str(file.get("name") or file.get("title") or f"file-{file['id']}"),
        size=size if isinstance(size, int) and size > 0 else None,
        ref=str(file["id"]),
    )
