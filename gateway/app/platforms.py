"""The chat platforms of a configuration: each adapter with what the runtime needs to know of it.

A platform's package is imported when it is configured, and never otherwise.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gateway.app.bots import BotTaken, hold_bot
from gateway.app.doors import door_of
from gateway.app.lean import UNUSED_BY_CHATS, left_out
from gateway.app.slack import SLACK, open_slack_accounts, slack_accounts
from gateway.domain.errors import HomeError
from gateway.domain.health import Health, HealthState
from gateway.domain.ids import Account, ChatType, Place
from gateway.ports import (
    Adapter,
    Clock,
    FileFetching,
    Media,
    PressAnswering,
    Reacting,
    Renderer,
    Streaming,
    Typing,
)

if TYPE_CHECKING:
    from adapters.telegram.config import ParsedTelegram, TelegramAccount
    from adapters.telegram.menu import Menu
    from gateway.config.home import Home
    from gateway.config.schema import Config
    from gateway.runtime.access_door import Door
    from gateway.runtime.commands import Command
    from gateway.runtime.delivery import Budget
    from gateway.telemetry.redact import Redactor
    from store.open import OpenStore

logger = logging.getLogger(__name__)

TELEGRAM: Final = "telegram"
TELEGRAM_VARIABLE: Final = "TELEGRAM_BOT_TOKEN"
SUPPORTED: Final = frozenset({TELEGRAM, SLACK})


@dataclass(slots=True, kw_only=True)
class Platforms:
    """What was opened; `health` also has the platforms that do not run, with the reason.

    `homes` are the home channels of the configuration; `named` returns the place that a platform's
    own id names, None for what is no id.
    """

    adapters: list[Adapter] = field(default_factory=list[Adapter])
    renderers: dict[str, Renderer] = field(default_factory=dict[str, Renderer])
    budgets: "dict[Account, Budget]" = field(default_factory=dict[Account, "Budget"])
    answering: dict[Account, PressAnswering] = field(default_factory=dict[Account, PressAnswering])
    fetching: dict[Account, FileFetching] = field(default_factory=dict[Account, FileFetching])
    typing: dict[Account, Typing] = field(default_factory=dict[Account, Typing])
    streaming: dict[Account, Streaming] = field(default_factory=dict[Account, Streaming])
    reacting: dict[Account, Reacting] = field(default_factory=dict[Account, Reacting])
    doors: "dict[Account, Door]" = field(default_factory=dict[Account, "Door"])
    health: dict[Account, Callable[[], Health]] = field(
        default_factory=dict[Account, Callable[[], Health]]
    )
    homes: list[Place] = field(default_factory=list[Place])
    named: dict[Account, Callable[[str], Place | None]] = field(
        default_factory=dict[Account, Callable[[str], Place | None]]
    )

    def off(self, platform: str, account: str = "", *, reason: str, clock: Clock) -> None:
        """Note an account that does not run."""
        name = f"{platform}@{account}" if account else platform
        logger.error("%s is off: %s", name, reason)
        health = Health(state=HealthState.OFF, since=clock.now(), reason=reason)
        self.health[(platform, account)] = lambda: health


async def open_platforms(
    config: "Config",
    *,
    environ: Mapping[str, str],
    redactor: "Redactor",
    store: "OpenStore",
    media: Media,
    clock: Clock,
    stack: AsyncExitStack,
) -> Platforms:
    """Open every platform that is configured, until the stack ends; connects to none yet.

    `environ` has the profile's own variables too.
    """
    opened = Platforms()
    for name in config.platforms:
        if name not in SUPPORTED:
            opened.off(name, reason="this version does not support it", clock=clock)
    found = _telegram(config, environ)
    for account in () if found is None else found.accounts:
        token = account.token.get_secret_value()
        redactor.add({token, account.webhook.secret.get_secret_value()})
        try:
            held = hold_bot(TELEGRAM, token, service=account.base_url, environ=environ)
            stack.enter_context(held)
        except BotTaken as error:
            opened.off(TELEGRAM, account.name, reason=str(error), clock=clock)
            continue
        except (HomeError, OSError) as error:
            logger.warning("whether another process runs this bot is not known: %s", error)
        await _open_telegram(
            opened, account, config, store=store, media=media, clock=clock, stack=stack
        )
    await open_slack_accounts(
        opened,
        config,
        environ=environ,
        redactor=redactor,
        store=store,
        media=media,
        clock=clock,
        stack=stack,
    )
    return opened


def renderers_of(config: "Config", environ: Mapping[str, str]) -> dict[str, Renderer]:
    """Return how cards are laid out on the configured platforms, without opening any."""
    renderers: dict[str, Renderer] = {}
    telegram = _telegram(config, environ)
    if telegram is not None and telegram.accounts:
        from adapters.telegram.markup import TelegramRenderer

        renderers[TELEGRAM] = TelegramRenderer()
    slack = slack_accounts(config, environ)
    if slack is not None and slack.accounts:
        from adapters.slack.markup import SlackRenderer

        renderers[SLACK] = SlackRenderer()
    return renderers


def listed_people(config: "Config", environ: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return whom the accounts of each configured platform list by their ids."""
    parsed = {TELEGRAM: _telegram(config, environ), SLACK: slack_accounts(config, environ)}
    return {
        platform: frozenset[str]().union(*(account.people for account in found.accounts))
        for platform, found in parsed.items()
        if found is not None
    }


def with_profile(home: "Home", environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the variables of the profile's `.env`, which come first.

    Raises:
        ConfigError: The file cannot be read.
    """
    from gateway.config.dotenv import read_env_file

    return {**environ, **read_env_file(home.env_file).variables}


def _telegram(config: "Config", environ: Mapping[str, str]) -> "ParsedTelegram | None":
    if TELEGRAM not in config.platforms and not environ.get(TELEGRAM_VARIABLE):
        return None
    from adapters.telegram.config import parse_telegram

    # What is wrong with it was told when the configuration was loaded.
    return parse_telegram(config.platforms.get(TELEGRAM), environ=environ)


async def _open_telegram(
    opened: Platforms,
    account: "TelegramAccount",
    config: "Config",
    *,
    store: "OpenStore",
    media: Media,
    clock: Clock,
    stack: AsyncExitStack,
) -> None:
    with left_out(UNUSED_BY_CHATS):
        from adapters.telegram.adapter import Setting, open_telegram
        from adapters.telegram.ids import GENERAL_TOPIC, is_private
        from adapters.telegram.markup import TelegramRenderer
        from adapters.telegram.traffic import BURST_MS, SEND_COST_MS
    from gateway.runtime.delivery import Budget

    adapter = await stack.enter_async_context(
        open_telegram(
            account,
            sent=store.readers.sent,
            chats=store.store,
            media=media,
            clock=clock,
            setting=Setting(
                menus=_telegram_menus(account, config),
                sessions_per_user=config.gateway.group_sessions_per_user,
            ),
        )
    )
    key = (TELEGRAM, account.name)
    opened.adapters.append(adapter)
    opened.renderers[TELEGRAM] = TelegramRenderer()
    opened.budgets[key] = Budget(cost_ms=SEND_COST_MS, burst_ms=BURST_MS)
    opened.answering[key] = adapter
    opened.fetching[key] = adapter
    opened.typing[key] = adapter
    opened.reacting[key] = adapter
    if account.streaming:
        opened.streaming[key] = adapter
    opened.health[key] = lambda: adapter.health
    opened.doors[key] = door_of(
        account,
        is_direct=lambda place: is_private(place.chat),
        main_threads=frozenset({GENERAL_TOPIC}),
    )
    if account.home_channel:
        opened.homes.append(_telegram_home(account))


def _telegram_menus(account: "TelegramAccount", config: "Config") -> "Sequence[Menu]":
    from adapters.telegram.menu import Menu
    from gateway.app.menus import menus_of

    def menu(offered: "Sequence[Command]", **scope: Any) -> Menu:
        return Menu(commands=tuple((item.name, item.summary) for item in offered), **scope)

    found = menus_of(config.access, (TELEGRAM, account.name), groups=account.groups)
    return (
        menu(found.private),
        menu(found.groups, groups=True),
        *(menu(offered, chat=chat) for chat, offered in found.chats.items()),
        # The chat with a person has that person's id.
        *(menu(offered, chat=person) for person, offered in found.people.items()),
        *(menu(offered, chat=x, user=person) for (x, person), offered in found.members.items()),
    )


def _telegram_home(account: "TelegramAccount") -> Place:
    from adapters.telegram.ids import is_private

    chat = account.home_channel
    chat_type = ChatType.DM if is_private(chat) else ChatType.CHANNEL
    return Place(platform=TELEGRAM, account=account.name, chat=chat, chat_type=chat_type)
