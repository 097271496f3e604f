"""`chat.*`: what the app writes, changes, takes back and streams."""

from tests.fakes.slack import payloads
from tests.fakes.slack.blocks import MAX_MARKDOWN
from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.methods.call import Asked
from tests.fakes.slack.posting import change, delete, post
from tests.fakes.slack.state import Json, Message


async def post_message(asked: Asked) -> Json:
    channel = asked.channel(write=True)
    body, params = asked.body(), asked.params
    if params.flag("reply_broadcast"):
        asked.problem("reply_broadcast is not modelled here")
    new = post(
        asked.service,
        asked.team,
        channel,
        user=asked.team.bot_user,
        by_bot=True,
        thread_ts=params.text("thread_ts"),
        metadata=_metadata(asked),
        unfurls=not (
            str(params.text("unfurl_links", "true")).lower() == "false"
            and str(params.text("unfurl_media", "true")).lower() == "false"
        ),
        **body,
    )
    shown = payloads.message(asked.service, asked.team, new)
    return {"channel": channel.id, "ts": new.ts, "message": shown}


async def post_ephemeral(asked: Asked) -> Json:
    channel, user = asked.channel(write=True), asked.params.text("user")
    if user not in channel.members:
        raise ApiError("user_not_in_channel")
    new = post(
        asked.service,
        asked.team,
        channel,
        user=asked.team.bot_user,
        by_bot=True,
        ephemeral_to=user,
        thread_ts=asked.params.text("thread_ts"),
        **asked.body(),
    )
    return {"message_ts": new.ts}


async def update(asked: Asked) -> Json:
    channel = asked.channel(write=True)
    shown = _own(asked, asked.message(channel))
    body = asked.body(update=True)
    if not asked.params.given("blocks"):
        # Without blocks in the call the old ones stay.
        body["blocks"] = shown.blocks
    metadata = _metadata(asked)
    change(
        asked.service,
        asked.team,
        channel,
        shown,
        metadata=metadata if asked.params.given("metadata") else shown.metadata,
        **body,
    )
    return {"channel": channel.id, "ts": shown.ts, "text": shown.text}


async def remove(asked: Asked) -> Json:
    channel = asked.channel(write=True)
    shown = _own(asked, asked.message(channel))
    delete(asked.service, asked.team, channel, shown)
    return {"channel": channel.id, "ts": shown.ts}


async def start_stream(asked: Asked) -> Json:
    channel, params = asked.channel(write=True), asked.params
    thread = params.text("thread_ts")
    if not thread:
        raise ApiError("invalid_arguments")
    user, team = params.text("recipient_user_id"), params.text("recipient_team_id")
    if channel.kind != "im" and not (user and team):
        raise ApiError("missing_recipient_user_id" if not user else "missing_recipient_team_id")
    new = post(
        asked.service,
        asked.team,
        channel,
        user=asked.team.bot_user,
        by_bot=True,
        thread_ts=thread,
        streaming=True,
        text=_markdown(asked),
    )
    return {"channel": channel.id, "ts": new.ts}


async def append_stream(asked: Asked) -> Json:
    channel = asked.channel(write=True)
    shown = _streaming(asked, asked.message(channel))
    more = _markdown(asked)
    if not more:
        raise ApiError("no_text")
    shown.past.append(shown.text)
    shown.text += more
    asked.service.changes.note()
    return {"channel": channel.id, "ts": shown.ts}


async def stop_stream(asked: Asked) -> Json:
    channel = asked.channel(write=True)
    shown = _streaming(asked, asked.message(channel))
    shown.text += _markdown(asked)
    shown.blocks = asked.params.array("blocks")
    shown.metadata = _metadata(asked)
    shown.streaming = False
    asked.service.changes.note()
    shown_now = payloads.message(asked.service, asked.team, shown)
    return {"channel": channel.id, "ts": shown.ts, "message": shown_now}


def _markdown(asked: Asked) -> str:
    text = asked.params.text("markdown_text")
    if len(text) > MAX_MARKDOWN:
        raise ApiError("markdown_text_too_long")
    return text


def _own(asked: Asked, shown: Message) -> Message:
    if not shown.by_bot:
        raise ApiError("cant_update_message" if "update" in asked.method else "cant_delete_message")
    if shown.streaming:
        raise ApiError("streaming_state_conflict")
    return shown


def _streaming(asked: Asked, shown: Message) -> Message:
    if not shown.streaming or not shown.by_bot:
        raise ApiError("message_not_in_streaming_state")
    del asked
    return shown


def _metadata(asked: Asked) -> Json | None:
    given = asked.params.mapping("metadata")
    if given is None:
        return None
    if not isinstance(given.get("event_type"), str) or not isinstance(
        given.get("event_payload"), dict
    ):
        raise ApiError("invalid_metadata_format")
    return given
