"""What setting up each chat platform takes: its secrets, how they are checked, how people are named.

A platform is one more entry of `SETUPS`; its package is imported when it is checked.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret of a platform: `key` of its section, the variable of `.env`, where it comes from."""

    key: str
    variable: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduced:
    """Whom the secrets belong to, and what whoever sets it up should know."""

    name: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformSetup:
    """One platform. `check` asks it by its secrets (by key) and its address, None for its own.

    `is_person` tells whether something can be the id of a person; `people` says what one looks like.
    """

    title: str
    secrets: tuple[Secret, ...]
    check: Callable[[Mapping[str, str], str | None], Awaitable[Introduced]]
    is_person: Callable[[str], bool]
    people: str


async def _telegram(secrets: Mapping[str, str], base_url: str | None) -> Introduced:
    from pydantic import SecretStr, ValidationError

    from adapters.telegram.config import DEFAULT_BASE_URL, TelegramAccount
    from adapters.telegram.introduction import introduce
    from gateway.domain.errors import ConfigError

    try:
        account = TelegramAccount(
            token=SecretStr(secrets["token"]), base_url=base_url or DEFAULT_BASE_URL
        )
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        message = problem["msg"].removeprefix("Value error, ")
        raise ConfigError("platforms.telegram.base_url", message) from None
    name, notes = await introduce(account)
    return Introduced(name=name, notes=notes)


SETUPS: Final[Mapping[str, PlatformSetup]] = {
    "telegram": PlatformSetup(
        title="Telegram",
        secrets=(
            Secret(
                key="token",
                variable="TELEGRAM_BOT_TOKEN",
                prompt="Token of the bot, from @BotFather",
            ),
        ),
        check=_telegram,
        is_person=lambda text: text.isascii() and text.isdecimal(),
        people="an id is a number, such as 111",
    ),
}
"""By the name of the platform in the configuration."""
