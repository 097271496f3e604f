"""Who we are, whom we write to, and where a socket begins."""

from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.methods.call import Asked
from tests.fakes.slack.state import Channel, Json


async def auth_test(asked: Asked) -> Json:
    team = asked.team
    return {
        "url": f"https://{team.id.lower()}.slack.com/",
        "team": team.id,
        "user": "hermes",
        "team_id": team.id,
        "user_id": team.bot_user,
        "bot_id": team.bot_id,
        "is_enterprise_install": False,
    }


async def users_info(asked: Asked) -> Json:
    person = asked.team.people.get(asked.params.text("user"))
    if person is None:
        raise ApiError("user_not_found")
    return {
        "user": {
            "id": person.id,
            "team_id": asked.team.id,
            "name": person.name.lower(),
            "real_name": person.name,
            "is_bot": person.is_bot,
            "profile": {"display_name": person.name, "real_name": person.name},
        }
    }


async def users_conversations(asked: Asked) -> Json:
    """List the channels the app is in, page by page."""
    kinds = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
    asked.params.flag("exclude_archived")
    wanted = {kinds[kind] for kind in asked.params.text("types", "public_channel").split(",")}
    found = [
        channel
        for channel in asked.team.channels.values()
        if channel.kind in wanted and asked.team.bot_user in channel.members
    ]
    start, limit = int(asked.params.text("cursor") or 0), asked.params.whole("limit", 100)
    page = found[start : start + limit]
    following = str(start + limit) if start + limit < len(found) else ""
    return {
        "channels": [_channel(asked, channel) for channel in page],
        "response_metadata": {"next_cursor": following},
    }


async def conversations_info(asked: Asked) -> Json:
    return {"channel": _channel(asked, asked.channel())}


async def conversations_open(asked: Asked) -> Json:
    """Open the direct chat with a person."""
    user = asked.params.text("users")
    if user not in asked.team.people:
        raise ApiError("user_not_found")
    for channel in asked.team.channels.values():
        if channel.kind == "im" and user in channel.members:
            return {"channel": {"id": channel.id}}
    name = f"D{user[1:]}"
    asked.team.channels[name] = Channel(id=name, kind="im", members=[user, asked.team.bot_user])
    return {"channel": {"id": name}}


def _channel(asked: Asked, channel: Channel) -> Json:
    body: Json = {
        "id": channel.id,
        "is_im": channel.kind == "im",
        "is_mpim": channel.kind == "mpim",
        "is_channel": channel.kind == "channel",
        "is_group": channel.kind == "group",
        "is_archived": channel.archived,
    }
    if channel.kind == "im":
        return body | {"user": next(u for u in channel.members if u != asked.team.bot_user)}
    return body | {"name": channel.name, "is_member": True}
