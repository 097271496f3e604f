"""Who the bot is, what its menu says, and who is in its chats."""

import re
from collections.abc import Mapping
from typing import Any, Final

from tests.fakes.telegram import wire
from tests.fakes.telegram.chats import resolve
from tests.fakes.telegram.errors import bad_request
from tests.fakes.telegram.methods.call import Asked, Method
from tests.fakes.telegram.state import Bot, Chat, Json, Person

MAX_COMMANDS: Final = 100
MAX_DESCRIPTION: Final = 256
_COMMAND: Final = re.compile(r"[a-z0-9_]{1,32}\Z")
_FULL: Final[Json] = {
    "accent_color_id": 0,
    "max_reaction_count": 11,
    "accepted_gift_types": {
        "unlimited_gifts": False,
        "limited_gifts": False,
        "unique_gifts": False,
        "premium_subscription": False,
        "gifts_from_channels": False,
    },
}


async def get_me(asked: Asked) -> Any:
    bot = asked.bot
    return wire.account(bot) | {
        "can_join_groups": True,
        "can_read_all_group_messages": bot.reads_all,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": bot.topics_in_private,
        "allows_users_to_create_topics": bot.topics_in_private,
    }


async def set_my_commands(asked: Asked) -> Any:
    commands: list[Json] = asked.params.array("commands")
    if len(commands) > MAX_COMMANDS:
        raise bad_request("too many commands specified")
    for command in commands:
        if not _COMMAND.match(command["command"].removeprefix("/")):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(command["description"]) <= MAX_DESCRIPTION:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    asked.bot.commands[_scope(asked)] = commands
    asked.service.changed()
    return True


async def get_my_commands(asked: Asked) -> Any:
    return asked.bot.commands.get(_scope(asked), [])


async def delete_my_commands(asked: Asked) -> Any:
    asked.bot.commands.pop(_scope(asked), None)
    asked.service.changed()
    return True


def commands_seen(bot: Bot, chat: Chat, person: Person) -> list[Json]:
    """Return the menu of a person in a chat: that of the narrowest scope which has one."""
    admin = chat.members.get(person.id) in _ADMINS
    scopes = [f"chat:{chat.id}::", "all_private_chats:::", "default:::"]
    if chat.kind != "private":
        scopes = [
            f"chat_member:{chat.id}:{person.id}:",
            *([f"chat_administrators:{chat.id}::"] if admin else []),
            f"chat:{chat.id}::",
            *(["all_chat_administrators:::"] if admin else []),
            "all_group_chats:::",
            "default:::",
        ]
    menus = [bot.commands[scope] for scope in scopes if bot.commands.get(scope)]
    return menus[0] if menus else []


async def get_chat(asked: Asked) -> Any:
    chat = resolve(asked.bot, asked.params.text("chat_id"))
    return wire.chat_head(asked.service.world, chat) | _FULL


async def get_chat_member(asked: Asked) -> Any:
    chat = _inside(asked)
    user = asked.params.whole("user_id")
    if user == asked.bot.id:
        return wire.member(asked.service.world, asked.bot, user, chat.bot_status)
    if user not in asked.service.world.people:
        raise bad_request("PARTICIPANT_ID_INVALID")
    status = chat.members.get(user, "left")
    return wire.member(asked.service.world, asked.bot, user, status)


async def get_chat_administrators(asked: Asked) -> Any:
    chat = _inside(asked)
    if chat.kind == "private":
        raise bad_request("there are no administrators in the private chat")
    found = {user: status for user, status in chat.members.items() if status in _ADMINS}
    return [wire.member(asked.service.world, asked.bot, *entry) for entry in found.items()]


_ADMINS: Final = ("creator", "administrator")


def _inside(asked: Asked) -> Chat:
    chat = resolve(asked.bot, asked.params.text("chat_id"))
    if chat.kind != "private" and chat.bot_status in ("left", "kicked"):
        raise bad_request("chat not found")
    return chat


_SCOPES: Final = {
    "default": False,
    "all_private_chats": False,
    "all_group_chats": False,
    "all_chat_administrators": False,
    "chat": True,
    "chat_administrators": True,
    "chat_member": True,
}
"""The scopes of menus, and whether each names a chat."""


def _scope(asked: Asked) -> str:
    scope = asked.params.mapping("scope") or {"type": "default"}
    if scope["type"] not in _SCOPES:
        raise bad_request("unsupported bot command scope type")
    if _SCOPES[scope["type"]]:
        chat = resolve(asked.bot, str(scope.get("chat_id", "")))
        if scope["type"] != "chat" and chat.kind == "private":
            raise bad_request("can't use specified bot commands scope type in private chats")
        if chat.kind == "channel":
            raise bad_request("can't change commands in channel chats")
    if scope["type"] == "chat_member" and scope["user_id"] not in asked.service.world.people:
        raise bad_request("user not found")
    parts = [scope["type"], scope.get("chat_id", ""), scope.get("user_id", "")]
    return ":".join(str(part) for part in [*parts, asked.params.text("language_code")])


METHODS: Mapping[str, Method] = {
    "getMe": get_me,
    "setMyCommands": set_my_commands,
    "getMyCommands": get_my_commands,
    "deleteMyCommands": delete_my_commands,
    "getChat": get_chat,
    "getChatMember": get_chat_member,
    "getChatAdministrators": get_chat_administrators,
}
