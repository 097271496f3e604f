"""Pushes updates to the webhooks bots have set, in order within a chat, again until accepted."""

import asyncio
from typing import Final

import aiohttp

from tests.fakes.telegram.service import Service
from tests.fakes.telegram.state import Bot, Update, Webhook

SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"
_WAIT_SECONDS: Final = 60


async def push_all(service: Service) -> None:
    """Serve every webhook until cancelled."""
    timeout = aiohttp.ClientTimeout(total=_WAIT_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            heads = [
                (bot, bot.webhook, update)
                for bot in service.world.bots.values()
                if bot.webhook is not None
                for update in _heads(service, bot, bot.webhook)
            ]
            if not heads or service.closing.is_set():
                await service.change(seconds=_WAIT_SECONDS)
                continue
            results = await asyncio.gather(
                *(_push(service, session, bot, hook, update) for bot, hook, update in heads)
            )
            if not all(results):
                await asyncio.sleep(service.limits.webhook_retry_seconds)


def _heads(service: Service, bot: Bot, hook: Webhook) -> list[Update]:
    """Return the oldest update of each chat, as many as may be under way at once."""
    service.forget_old(bot)
    heads: dict[int, Update] = {}
    for update in bot.updates:
        heads.setdefault(update.queue, update)
    return list(heads.values())[: hook.max_connections]


async def _push(
    service: Service, session: aiohttp.ClientSession, bot: Bot, hook: Webhook, update: Update
) -> bool:
    headers = {} if hook.secret is None else {SECRET_HEADER: hook.secret}
    try:
        async with session.post(hook.url, json=update.body, headers=headers) as answer:
            said = await answer.text()
            problem = "" if answer.ok else f"Wrong response from the webhook: {answer.status}"
    except (aiohttp.ClientError, TimeoutError) as error:
        said, problem = "", f"Connection failed: {type(error).__name__}"
    if problem:
        hook.last_error_at, hook.last_error = int(service.now()), problem
        service.changed()
        return False
    if '"method"' in said:
        service.violation("a webhook's answer called a method: not modelled here")
    if update.repeats > 0:
        update.repeats -= 1
    else:
        service.confirm(bot, [update])
    return True
