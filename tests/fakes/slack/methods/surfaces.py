"""Modals, reactions, and what an assistant shows beside its messages."""

from typing import Final

from tests.fakes.slack import blocks
from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.methods.call import Asked
from tests.fakes.slack.state import Json, View

_EMOJI: Final = frozenset(
    (
        "eyes",
        "white_check_mark",
        "x",
        "hourglass",
        "hourglass_flowing_sand",
        "warning",
        "+1",
        "-1",
        "tada",
        "thinking_face",
    )
)


async def views_open(asked: Asked) -> Json:
    user = asked.service.user_of_trigger(asked.params.text("trigger_id"))
    body = asked.params.mapping("view") or {}
    blocks.check_view(body)
    number = asked.service.world.number()
    view = View(
        id=f"V{number:08d}", team=asked.team.id, user=user, body=body, hash=f"{number}.hash"
    )
    asked.service.world.views[view.id] = view
    asked.service.changes.note()
    return {"view": shown(view)}


async def views_update(asked: Asked) -> Json:
    view = asked.service.world.views.get(asked.params.text("view_id"))
    if view is None or not view.open:
        raise ApiError("not_found")
    body = asked.params.mapping("view") or {}
    blocks.check_view(body)
    if asked.params.text("hash", view.hash) != view.hash:
        raise ApiError("hash_conflict")
    view.body, view.hash = body, f"{asked.service.world.number()}.hash"
    asked.service.changes.note()
    return {"view": shown(view)}


def shown(view: View) -> Json:
    return view.body | {"id": view.id, "team_id": view.team, "hash": view.hash}


async def add_reaction(asked: Asked) -> Json:
    channel, name = asked.channel(), asked.params.text("name")
    message = asked.message(channel, name="timestamp")
    if name not in _EMOJI:
        raise ApiError("invalid_name")
    users = message.reactions.setdefault(name, [])
    if asked.team.bot_user in users:
        raise ApiError("already_reacted")
    users.append(asked.team.bot_user)
    asked.service.changes.note()
    return {}


async def remove_reaction(asked: Asked) -> Json:
    channel, name = asked.channel(), asked.params.text("name")
    message = asked.message(channel, name="timestamp")
    users = message.reactions.get(name, [])
    if asked.team.bot_user not in users:
        raise ApiError("no_reaction")
    users.remove(asked.team.bot_user)
    if not users:
        message.reactions.pop(name)
    asked.service.changes.note()
    return {}


async def set_status(asked: Asked) -> Json:
    channel = asked.channel(name="channel_id")
    thread, status = asked.params.text("thread_ts"), asked.params.text("status")
    if thread not in channel.messages:
        raise ApiError("thread_not_found")
    channel.statuses.append((thread, status))
    asked.service.changes.note()
    return {}


async def set_prompts(asked: Asked) -> Json:
    channel = asked.channel(name="channel_id")
    prompts = asked.params.array("prompts")
    asked.params.text("title")
    if not 1 <= len(prompts) <= 4:
        raise ApiError("invalid_arguments")
    channel.prompts[asked.params.text("thread_ts")] = [str(p["message"]) for p in prompts]
    asked.service.changes.note()
    return {}


async def set_title(asked: Asked) -> Json:
    channel = asked.channel(name="channel_id")
    channel.titles[asked.params.text("thread_ts")] = asked.params.text("title")
    asked.service.changes.note()
    return {}
