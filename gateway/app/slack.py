"""Opens the Slack accounts of a configuration; those of one app share what it is told."""

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from gateway.app.bots import BotTaken, hold_bot
from gateway.app.doors import door_of
from gateway.domain.errors import HomeError
from gateway.domain.ids import ChatType, Place
from gateway.ports import Clock, Media

if TYPE_CHECKING:
    from adapters.slack.adapter import App
    from adapters.slack.config import ParsedSlack, SlackAccount
    from gateway.app.platforms import Platforms
    from gateway.config.schema import Config
    from gateway.telemetry.redact import Redactor
    from store.open import OpenStore

logger = logging.getLogger(__name__)

SLACK: Final = "slack"
VARIABLES: Final = ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")


def slack_accounts(config: "Config", environ: Mapping[str, str]) -> "ParsedSlack | None":
    """Return the configured accounts, None when nothing speaks of Slack."""
    if SLACK not in config.platforms and not any(map(environ.get, VARIABLES)):
        return None
    from adapters.slack.config import parse_slack

    # What is wrong with it was told when the configuration was loaded.
    return parse_slack(config.platforms.get(SLACK), environ=environ)


async def open_slack_accounts(
    opened: "Platforms",
    config: "Config",
    *,
    environ: Mapping[str, str],
    redactor: "Redactor",
    store: "OpenStore",
    media: Media,
    clock: Clock,
    stack: AsyncExitStack,
) -> None:
    """Open them until the stack ends; connects to nothing yet."""
    found = slack_accounts(config, environ)
    accounts = [] if found is None else list(found.accounts)
    if not accounts:
        return
    from adapters.slack.adapter import new_app

    shared = Counter(_app_of(account) for account in accounts)
    apps: dict[str, App] = {name: new_app(count, clock) for name, count in shared.items()}
    for account in accounts:
        secrets = (account.bot_token, account.app_token, account.signing_secret)
        redactor.add({secret.get_secret_value() for secret in secrets})
        token = account.bot_token.get_secret_value()
        try:
            stack.enter_context(hold_bot(SLACK, token, service=account.base_url, environ=environ))
        except BotTaken as error:
            opened.off(SLACK, account.name, reason=str(error), clock=clock)
            continue
        except (HomeError, OSError) as error:
            logger.warning("whether another process runs this bot is not known: %s", error)
        app = apps[_app_of(account)]
        await _open(
            opened, account, app, config, store=store, media=media, clock=clock, stack=stack
        )


async def _open(
    opened: "Platforms",
    account: "SlackAccount",
    app: "App",
    config: "Config",
    *,
    store: "OpenStore",
    media: Media,
    clock: Clock,
    stack: AsyncExitStack,
) -> None:
    from adapters.slack.adapter import Books, Setting, open_slack
    from adapters.slack.ids import is_direct, place_named
    from adapters.slack.markup import SlackRenderer
    from adapters.slack.traffic import BURST_MS, SEND_COST_MS
    from gateway.runtime.commands import COMMANDS
    from gateway.runtime.delivery import Budget

    names = frozenset(name for item in COMMANDS for name in (item.name, *item.aliases))
    adapter = await stack.enter_async_context(
        open_slack(
            account,
            app,
            books=Books(sent=store.readers.sent, inbox=store.readers.inbox),
            media=media,
            clock=clock,
            setting=Setting(
                commands=names, sessions_per_user=config.gateway.group_sessions_per_user
            ),
        )
    )
    key = (SLACK, account.name)
    opened.adapters.append(adapter)
    opened.renderers[SLACK] = SlackRenderer()
    opened.budgets[key] = Budget(cost_ms=SEND_COST_MS, burst_ms=BURST_MS)
    opened.answering[key] = adapter
    opened.fetching[key] = adapter
    opened.typing[key] = adapter
    opened.reacting[key] = adapter
    if account.streaming:
        opened.streaming[key] = adapter
    opened.health[key] = lambda: adapter.health
    opened.doors[key] = door_of(account, is_direct=lambda place: is_direct(place.chat))
    opened.named[key] = lambda text: place_named(text, account.name)
    if account.home_channel:
        opened.homes.append(_home(account))


def _home(account: "SlackAccount") -> Place:
    from adapters.slack.ids import is_direct

    chat = account.home_channel
    chat_type = ChatType.DM if is_direct(chat) else ChatType.CHANNEL
    return Place(platform=SLACK, account=account.name, chat=chat, chat_type=chat_type)


def _app_of(account: "SlackAccount") -> str:
    """Return what accounts of one app have in common."""
    app = account.app_token.get_secret_value() or account.signing_secret.get_secret_value()
    return f"{account.base_url} {account.mode} {app or account.name}"
