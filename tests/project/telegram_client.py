"""The bot library the adapter is built on, pointed at the server for tests."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from telegram import Bot

from tests.fakes.telegram.town import BotDriver, Town


@asynccontextmanager
async def client(town: Town, bot: BotDriver | None = None) -> AsyncGenerator[Bot]:
    """Connect as a bot, the usual one when none is named."""
    token = (bot or town.bot()).token
    root = town.base_url
    async with Bot(token, base_url=f"{root}/bot", base_file_url=f"{root}/file/bot") as connected:
        yield connected
