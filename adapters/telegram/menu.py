"""The menus of commands, each for a scope of chats or people; Telegram is told what is not so already."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
    BotCommandScopeChatMember,
)
from telegram import error as sdk

from adapters.telegram.ids import is_private

logger = logging.getLogger(__name__)

MAX_COMMANDS: Final = 100
MAX_SUMMARY: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """Names and summaries of commands; `chat` "" is for all private chats, or for all `groups`.

    With a `user`, it is what that person alone sees in the chat.
    """

    commands: tuple[tuple[str, str], ...]
    groups: bool = False
    chat: str = ""
    user: str = ""


class Menus:
    """Shows the menus of one bot; what is known to be there is not sent again."""

    def __init__(self, bot: Bot, menus: Sequence[Menu]) -> None:
        self._bot = bot
        self._waiting = [menu for menu in menus if _is_nameable(menu)]

    async def show(self) -> None:
        """Set every menu that is another; no bot is deaf for want of one.

        Raises:
            TelegramError: The service cannot be reached.
        """
        later: list[Menu] = []
        while self._waiting:
            menu = self._waiting[0]
            try:
                await self._set(menu)
            except sdk.RetryAfter:
                logger.info("menus of commands are set later: Telegram asked for a pause")
                break
            except (sdk.BadRequest, sdk.Forbidden) as error:
                # Most often somebody who has not begun a chat with the bot.
                logger.info("a menu of commands was refused: %s", error.message)
                later.append(menu)
            self._waiting.pop(0)
        self._waiting += later

    async def _set(self, menu: Menu) -> None:
        scope = _scope(menu)
        wanted = tuple(
            BotCommand(name.replace("-", "_").lower(), summary[:MAX_SUMMARY])
            for name, summary in menu.commands[:MAX_COMMANDS]
        )
        if await self._bot.get_my_commands(scope=scope) == wanted:
            return
        if wanted:
            await self._bot.set_my_commands(wanted, scope=scope)
        else:
            await self._bot.delete_my_commands(scope=scope)


def _is_nameable(menu: Menu) -> bool:
    """Say whether Telegram can be told of its scope: people and the chats of people have numbers."""
    numbers = [text for text in (menu.chat, menu.user) if text]
    return all(text.removeprefix("-").isdecimal() for text in numbers) and (
        not menu.user or not is_private(menu.chat)
    )


def _scope(menu: Menu) -> BotCommandScope:
    if menu.user:
        return BotCommandScopeChatMember(chat_id=int(menu.chat), user_id=int(menu.user))
    if menu.chat:
        return BotCommandScopeChat(chat_id=int(menu.chat))
    return BotCommandScopeAllGroupChats() if menu.groups else BotCommandScopeAllPrivateChats()
