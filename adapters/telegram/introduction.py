"""Who a token belongs to, asked of the service once: for setting the bot up. Receives and sends nothing."""

from typing import Final

from telegram import error as sdk

from adapters.telegram.client import open_client
from adapters.telegram.config import TelegramAccount
from adapters.telegram.errors import cause_of
from adapters.telegram.ids import PLATFORM
from gateway.domain.errors import AdapterError, AdapterUnauthorized

PRIVATE: Final = (
    "In groups it sees commands, mentions of its name and replies to it alone: privacy mode is on. "
    "To let it follow a topic it was called into, switch that off with /setprivacy at @BotFather, "
    "then add it to the group again."
)
OPEN: Final = (
    "It receives every message of its groups: privacy mode is off. It answers only what is for it."
)
NO_GROUPS: Final = "It cannot be added to groups; /setjoingroups at @BotFather changes that."


async def introduce(account: TelegramAccount) -> tuple[str, tuple[str, ...]]:
    """Return what a bot is called, and what one should know of it.

    Raises:
        AdapterUnauthorized: The service does not know the token.
        AdapterError: It cannot be asked.
    """
    try:
        async with open_client(account) as client:
            me = await client.bot.get_me()
    except sdk.InvalidToken as error:
        raise AdapterUnauthorized(PLATFORM, "the token is not valid (any more)") from error
    except sdk.TelegramError as error:
        raise AdapterError(f"Telegram cannot be reached: {cause_of(error)}") from error
    notes = (OPEN if me.can_read_all_group_messages else PRIVATE,)
    if not me.can_join_groups:
        notes = (*notes, NO_GROUPS)
    return f"@{me.username or me.first_name}", notes
