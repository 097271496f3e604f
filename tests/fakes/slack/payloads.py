"""Renders what is stored, and what happens, as Slack writes it."""

from typing import TYPE_CHECKING

from tests.fakes.slack.state import APP, Channel, Json, Message, StoredFile, Team

if TYPE_CHECKING:
    from tests.fakes.slack.service import Service


def message(service: "Service", team: Team, shown: Message, *, metadata: bool = False) -> Json:
    """Render a message as history and events show it."""
    body: Json = {"type": "message", "user": shown.user, "ts": shown.ts, "text": shown.text}
    body |= {"team": team.id}
    person = team.people.get(shown.user)
    if shown.by_bot:
        body |= {"bot_id": team.bot_id, "app_id": APP}
    elif person is not None and person.is_bot:
        body |= {"bot_id": f"B{person.id[1:]}", "app_id": "A0OTHER"}
    if shown.subtype:
        body["subtype"] = shown.subtype
    if shown.blocks:
        body["blocks"] = shown.blocks
    if shown.attachments:
        body["attachments"] = shown.attachments
    if shown.files:
        body["files"] = [file(service, team, team.files[name]) for name in shown.files]
    if shown.edited:
        body["edited"] = {"user": shown.user, "ts": shown.edited}
    if shown.reactions:
        body["reactions"] = [
            {"name": name, "users": users, "count": len(users)}
            for name, users in shown.reactions.items()
        ]
    if shown.metadata is not None and metadata:
        body["metadata"] = shown.metadata
    return body | _thread(team, shown)


def _thread(team: Team, shown: Message) -> Json:
    messages = team.channels[shown.channel].messages
    if shown.thread_ts and shown.thread_ts != shown.ts:
        root = messages.get(shown.thread_ts)
        return {"thread_ts": shown.thread_ts, "parent_user_id": root.user if root else ""}
    replies = [m for m in messages.values() if m.thread_ts == shown.ts and _is_seen(m)]
    if not replies:
        return {}
    return {
        "thread_ts": shown.ts,
        "reply_count": len(replies),
        "latest_reply": replies[-1].ts,
    }


def _is_seen(shown: Message) -> bool:
    return not shown.deleted and not shown.ephemeral_to


def file(service: "Service", team: Team, stored: StoredFile) -> Json:
    address = f"{service.url}/files-pri/{team.id}-{stored.id}/{stored.name}"
    return {
        "id": stored.id,
        "name": stored.name,
        "title": stored.title,
        "mimetype": stored.media_type,
        "filetype": stored.name.rpartition(".")[2],
        "size": stored.size,
        "mode": "hosted",
        "url_private": address,
        "url_private_download": address,
    }


def event(service: "Service", team: Team, body: Json) -> Json:
    """Wrap an event."""
    return {
        "token": "verification-token",
        "team_id": team.id,
        "api_app_id": APP,
        "event": body,
        "type": "event_callback",
        "event_id": f"Ev{service.world.number():08d}",
        "event_time": int(service.now()),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": team.id,
                "user_id": team.bot_user,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
    }


def interaction(service: "Service", team: Team, user: str, kind: str) -> Json:
    """Return what every interaction has."""
    return {
        "type": kind,
        "user": {
            "id": user,
            "username": team.people[user].name.lower(),
            "name": team.people[user].name.lower(),
            "team_id": team.id,
        },
        "api_app_id": APP,
        "token": "verification-token",
        "trigger_id": service.trigger(user),
        "team": {"id": team.id, "domain": team.id.lower()},
        "enterprise": None,
        "is_enterprise_install": False,
    }


def press(
    service: "Service", team: Team, user: str, shown: Message, element: Json, block: str
) -> Json:
    """Return the interaction of a pressed button; `shown` is the message as the presser sees it."""
    channel = team.channels[shown.channel]
    container: Json = {
        "type": "message",
        "message_ts": shown.ts,
        "channel_id": channel.id,
        "is_ephemeral": bool(shown.ephemeral_to),
    }
    if shown.thread_ts:
        container["thread_ts"] = shown.thread_ts
    return interaction(service, team, user, "block_actions") | {
        "container": container,
        "channel": {"id": channel.id, "name": channel.name or "directmessage"},
        "message": message(service, team, shown),
        "state": {"values": {}},
        "response_url": f"{service.url}/response/{service.world.number()}",
        "actions": [
            {
                "type": element["type"],
                "action_id": element["action_id"],
                "block_id": block,
                "text": element["text"],
                "value": element.get("value", ""),
                "action_ts": service.world.new_ts(service.now()),
            }
        ],
    }


def slash(service: "Service", team: Team, channel: Channel, user: str, text: str) -> Json:
    return {
        "token": "verification-token",
        "team_id": team.id,
        "team_domain": team.id.lower(),
        "channel_id": channel.id,
        "channel_name": channel.name or "directmessage",
        "user_id": user,
        "user_name": team.people[user].name.lower(),
        "command": "/hermes",
        "text": text,
        "api_app_id": APP,
        "is_enterprise_install": "false",
        "response_url": f"{service.url}/response/{service.world.number()}",
        "trigger_id": service.trigger(user),
    }
