"""Fetching updates by polling, and having them pushed."""

import re
import time
from collections.abc import Mapping
from typing import Any, Final

from tests.fakes.telegram.errors import (
    bad_request,
    other_poller,
    terminated_by_webhook,
    webhook_active,
)
from tests.fakes.telegram.methods.call import Asked, Method
from tests.fakes.telegram.service import Service
from tests.fakes.telegram.state import Bot, Update, Webhook

MAX_UPDATES: Final = 100
MAX_HOLD_SECONDS: Final = 50
MAX_CONNECTIONS: Final = 40
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{1,256}\Z")
_LOOPBACK: Final = ("http://127.0.0.1:", "http://localhost:")


async def get_updates(asked: Asked) -> Any:
    params, bot, service = asked.params, asked.bot, asked.service
    offset = params.whole("offset")
    limit = min(max(params.whole("limit", MAX_UPDATES), 1), MAX_UPDATES)
    hold = min(params.whole("timeout"), MAX_HOLD_SECONDS)
    if params.given("allowed_updates"):
        bot.allowed = params.array("allowed_updates") or None
    if bot.webhook is not None:
        raise webhook_active()
    service.forget_old(bot)
    _confirm(service, bot, offset)
    turn = service.take_poll(bot)
    end = time.monotonic() + hold
    while True:
        if bot.webhook is not None:
            raise terminated_by_webhook()
        if not service.is_polling(bot, turn):
            raise other_poller()
        ready = [u for u in bot.updates if u.id >= offset or u.repeats > 0][:limit]
        left = end - time.monotonic()
        if ready or service.closing.is_set() or left <= 0:
            return [_handed_out(update, offset) for update in ready]
        await service.change(seconds=left)


async def set_webhook(asked: Asked) -> Any:
    params, bot = asked.params, asked.bot
    url = params.text("url")
    secret = params.text("secret_token") or None
    most = params.whole("max_connections", MAX_CONNECTIONS)
    _take_settings(asked)
    if not url:
        bot.webhook = None
        asked.service.changed()
        return True
    if not url.startswith(("https://", *_LOOPBACK)):
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    if secret is not None and not _SECRET.match(secret):
        raise bad_request("secret token contains unallowed characters")
    bot.webhook = Webhook(url=url, secret=secret, max_connections=min(max(most, 1), 100))
    asked.service.changed()
    return True


async def delete_webhook(asked: Asked) -> Any:
    _take_settings(asked)
    asked.bot.webhook = None
    asked.service.changed()
    return True


async def get_webhook_info(asked: Asked) -> Any:
    bot = asked.bot
    hook = bot.webhook
    info: dict[str, Any] = {
        "url": "" if hook is None else hook.url,
        "has_custom_certificate": False,
        "pending_update_count": len(bot.updates),
    }
    if bot.allowed is not None:
        info["allowed_updates"] = bot.allowed
    if hook is None:
        return info
    info["max_connections"] = hook.max_connections
    if hook.last_error_at is not None:
        info |= {"last_error_date": hook.last_error_at, "last_error_message": hook.last_error}
    return info


def _take_settings(asked: Asked) -> None:
    if asked.params.given("allowed_updates"):
        asked.bot.allowed = asked.params.array("allowed_updates") or None
    if asked.params.flag("drop_pending_updates"):
        asked.bot.updates.clear()


def _confirm(service: Service, bot: Bot, offset: int) -> None:
    if offset > 0:
        service.confirm(bot, [u for u in bot.updates if u.id < offset and u.repeats == 0])
    elif offset < 0:
        service.confirm(bot, bot.updates[:offset])


def _handed_out(update: Update, offset: int) -> Any:
    if update.id < offset:
        update.repeats -= 1
    return update.body


METHODS: Mapping[str, Method] = {
    "getUpdates": get_updates,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
}
