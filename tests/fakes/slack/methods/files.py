"""External uploads in their three steps, and what is known of a file."""

from tests.fakes.slack import payloads
from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.methods.call import Asked
from tests.fakes.slack.posting import post
from tests.fakes.slack.state import Json, StoredFile


async def get_upload_url(asked: Asked) -> Json:
    params = asked.params
    name, length = params.text("filename"), params.whole("length", 0)
    params.text("alt_txt")
    if not name or length < 1:
        raise ApiError("invalid_arguments")
    if length > asked.service.limits.upload_bytes:
        raise ApiError("file_upload_size_restricted")
    stored = StoredFile(
        id=f"F{asked.service.world.number():08d}",
        name=name,
        title=name,
        media_type="application/octet-stream",
        size=length,
    )
    asked.team.files[stored.id] = stored
    url = f"{asked.service.url}/upload/v1/{asked.team.id}-{stored.id}"
    return {"upload_url": url, "file_id": stored.id}


async def complete_upload(asked: Asked) -> Json:
    """Share uploaded files in a channel, as one message."""
    params = asked.params
    given = params.array("files")
    stored = [_uploaded(asked, item) for item in given]
    channel = asked.channel(name="channel_id", write=True)
    new = post(
        asked.service,
        asked.team,
        channel,
        user=asked.team.bot_user,
        by_bot=True,
        subtype="",
        text=params.text("initial_comment"),
        thread_ts=params.text("thread_ts"),
        files=[file.id for file in stored],
    )
    for file in stored:
        file.shared_at = f"{channel.id}:{new.ts}"
    return {"files": [{"id": file.id, "title": file.title} for file in stored]}


async def info(asked: Asked) -> Json:
    stored = asked.team.files.get(asked.params.text("file"))
    if stored is None:
        raise ApiError("file_not_found")
    body = payloads.file(asked.service, asked.team, stored)
    channel, _, ts = stored.shared_at.partition(":")
    kind = asked.team.channels[channel].kind if channel else ""
    share = {channel: [{"ts": ts}]} if channel else {}
    where = "public" if kind == "channel" else "private"
    return {"file": body | {"shares": {where: share} if share else {}}}


def _uploaded(asked: Asked, item: Json) -> StoredFile:
    stored = asked.team.files.get(str(item["id"]))
    if stored is None or not stored.uploaded:
        raise ApiError("file_not_found")
    stored.title = str(item.get("title") or stored.name)
    return stored
