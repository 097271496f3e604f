"""Puts messages into channels and tells the app of them, as Slack does: twice when it is mentioned."""

from typing import TYPE_CHECKING, Any

from tests.fakes.slack import blocks, payloads
from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.state import Channel, Json, Message, Team

if TYPE_CHECKING:
    from tests.fakes.slack.service import Service


def post(service: "Service", team: Team, channel: Channel, **values: Any) -> Message:
    """Add a message; whoever is to hear of it does."""
    new = Message(ts=service.world.new_ts(service.now()), channel=channel.id, **values)
    if new.thread_ts and new.thread_ts not in channel.messages:
        raise ApiError("thread_not_found")
    channel.messages[new.ts] = new
    if new.by_bot:
        service.pings_of_ours.extend(blocks.pings(new.blocks, new.text))
    if not new.ephemeral_to:
        announce(service, team, channel, payloads.message(service, team, new))
        _mention(service, team, channel, new)
    service.changes.note()
    return new


def announce(service: "Service", team: Team, channel: Channel, body: Json) -> None:
    """Tell the app what happened in a channel, when it is in there."""
    if team.bot_user not in channel.members:
        return
    about: Json = {"channel": channel.id, "channel_type": channel.kind}
    about["event_ts"] = service.world.new_ts(service.now()) if "subtype" in body else body["ts"]
    service.outbox.give("events_api", payloads.event(service, team, body | about))


def _mention(service: "Service", team: Team, channel: Channel, new: Message) -> None:
    if new.by_bot or new.subtype or team.bot_user not in channel.members or channel.kind == "im":
        return
    if team.bot_user not in blocks.mentioned(new.blocks, new.attachments, new.text):
        return
    body = payloads.message(service, team, new)
    body |= {"type": "app_mention", "channel": channel.id, "event_ts": new.ts}
    service.outbox.give("events_api", payloads.event(service, team, body))


def change(service: "Service", team: Team, channel: Channel, shown: Message, **values: Any) -> None:
    """Change a message and tell the app."""
    before = payloads.message(service, team, shown)
    shown.past.append(blocks.shown(shown.blocks, shown.text))
    for name, value in values.items():
        setattr(shown, name, value)
    shown.edited = service.world.new_ts(service.now())
    if shown.by_bot:
        service.pings_of_ours.extend(blocks.pings(shown.blocks, shown.text))
    body: Json = {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "ts": shown.edited,
        "message": payloads.message(service, team, shown),
        "previous_message": before,
    }
    announce(service, team, channel, body)
    service.changes.note()


def delete(service: "Service", team: Team, channel: Channel, shown: Message) -> None:
    """Delete a message and tell the app."""
    before = payloads.message(service, team, shown)
    shown.deleted = True
    body: Json = {
        "type": "message",
        "subtype": "message_deleted",
        "hidden": True,
        "ts": service.world.new_ts(service.now()),
        "deleted_ts": shown.ts,
        "previous_message": before,
    }
    announce(service, team, channel, body)
    service.changes.note()
