"""Files in both directions: uploads, albums, and where a file can be downloaded."""

from collections.abc import Awaitable, Mapping
from typing import Any, Final

from tests.fakes.telegram.chats import post
from tests.fakes.telegram.errors import ApiError, bad_request
from tests.fakes.telegram.files import described, keep
from tests.fakes.telegram.methods.call import Asked, Method
from tests.fakes.telegram.state import Json, StoredFile

MAX_ALBUM: Final = 10
_DETAILS: Final = ("duration", "width", "height", "performer", "title")
_ALONE: Final = frozenset({"document", "audio"})
"""These make no album with others."""


def _sends(kind: str) -> Method:
    async def send(asked: Asked) -> Any:
        file = _file(asked, kind, asked.params.text(kind))
        body, entities = asked.caption()
        markup = asked.markup()
        details = {n: asked.params.text(n) for n in _DETAILS if asked.params.given(n)}
        chat = asked.chat()
        message = post(
            asked.service,
            asked.bot,
            chat,
            by_bot=True,
            text=body,
            entities=entities,
            markup=markup,
            media=described(kind, file, details),
            **asked.placed(chat),
        )
        return asked.shown(message)

    return send


def send_media_group(asked: Asked) -> Awaitable[Any]:
    return _album(asked, asked.params.array("media"))


async def _album(asked: Asked, items: list[Json]) -> Any:
    if not items:
        raise bad_request("there are no messages to send")
    if len(items) > MAX_ALBUM:
        raise bad_request("too many messages to send as an album")
    kinds = {item["type"] for item in items}
    if len(kinds) > 1 and kinds & _ALONE:
        name = min(kinds & _ALONE).capitalize()
        raise bad_request(f"{name} can't be mixed with other media types")
    contents = [_album_item(asked, item) for item in items]
    chat = asked.chat()
    place = asked.placed(chat)
    album = str(asked.service.world.last_file) if len(items) > 1 else None
    sent = [
        post(asked.service, asked.bot, chat, by_bot=True, album=album, **content, **place)
        for content in contents
    ]
    return [asked.shown(message) for message in sent]


def _album_item(asked: Asked, item: Json) -> Json:
    file = _file(asked, item["type"], item["media"])
    nested = Asked(
        service=asked.service,
        bot=asked.bot,
        params=asked.params.inside(item),
        method=asked.method,
    )
    body, entities = nested.caption()
    media = described(item["type"], file, {n: item[n] for n in _DETAILS if n in item})
    return {"text": body, "entities": entities, "media": media}


async def get_file(asked: Asked) -> Any:
    file = asked.service.world.files.get(asked.params.text("file_id"))
    if file is None:
        raise bad_request("invalid file_id")
    if file.size > asked.service.limits.download_bytes:
        raise bad_request("file is too big")
    file.path = f"files/{file.id}/{file.name}"
    return {
        "file_id": file.id,
        "file_unique_id": f"u{file.id}",
        "file_size": file.size,
        "file_path": file.path,
    }


def _file(asked: Asked, kind: str, given: str) -> StoredFile:
    """Return what was uploaded now, or a file the service has already."""
    name = given.removeprefix("attach://") if given.startswith("attach://") else kind
    if not given or given.startswith("attach://"):
        upload = asked.params.upload(name)
        if upload is None:
            raise bad_request(f"there is no {kind} in the request")
        limits = asked.service.limits
        most = limits.photo_bytes if kind == "photo" else limits.upload_bytes
        if len(upload.data) > limits.upload_bytes:
            raise ApiError(413, "Request Entity Too Large")
        if len(upload.data) > most:
            raise bad_request(f"file of size {len(upload.data)} is too big for a {kind}")
        if not upload.data:
            raise bad_request("file must be non-empty")
        return keep(asked.service.world, upload.data, upload.name, upload.media_type)
    if given.startswith(("http://", "https://")):
        asked.problem("files by URL are not modelled here")
    file = asked.service.world.files.get(given)
    if file is None:
        raise bad_request("wrong file identifier/HTTP URL specified")
    return file


METHODS: Mapping[str, Method] = {
    "sendDocument": _sends("document"),
    "sendPhoto": _sends("photo"),
    "sendVoice": _sends("voice"),
    "sendAudio": _sends("audio"),
    "sendVideo": _sends("video"),
    "sendAnimation": _sends("animation"),
    "sendMediaGroup": send_media_group,
    "getFile": get_file,
}
