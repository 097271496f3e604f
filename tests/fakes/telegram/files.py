"""Files the service keeps, and how messages show them."""

from collections.abc import Mapping
from typing import Any

from tests.fakes.telegram.state import Json, StoredFile, World


def keep(
    world: World, data: bytes, name: str, media_type: str, *, size: int | None = None
) -> StoredFile:
    """Store a file under a new id; `size` is what it claims to be."""
    world.last_file += 1
    file = StoredFile(
        id=f"file-{world.last_file}",
        name=name,
        media_type=media_type,
        size=len(data) if size is None else size,
        data=data,
    )
    world.files[file.id] = file
    return file


def described(kind: str, file: StoredFile, details: Mapping[str, Any]) -> Json:
    """Return the field of a message that shows the file."""
    body: Json = {
        "file_id": file.id,
        "file_unique_id": f"u{file.id}",
        "file_size": file.size,
    }
    if kind == "photo":
        small = body | {"width": 90, "height": 67, "file_size": min(file.size, 1000)}
        return {"photo": [small, body | {"width": 800, "height": 600}]}
    body["mime_type"] = file.media_type
    if kind in ("voice", "audio", "video", "animation"):
        body["duration"] = int(details.get("duration", 1))
    if kind in ("video", "animation"):
        body |= {n: int(details.get(n, 100)) for n in ("width", "height")}
    if kind == "audio":
        body |= {n: details[n] for n in ("performer", "title") if n in details}
    if kind != "voice":
        body["file_name"] = file.name
    # An animation is shown as a document too, for clients that know no animations.
    extra: Json = {"document": _plain(body)} if kind == "animation" else {}
    return {kind: body} | extra


def _plain(body: Json) -> Json:
    return {n: v for n, v in body.items() if n not in ("duration", "width", "height")}
