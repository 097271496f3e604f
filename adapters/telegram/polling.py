"""Asks Telegram for updates. Asking for the next ones confirms those before, so storing comes first.

An own loop on the library's client instead of its `Updater`: that one confirms everything it has
fetched when it stops, gives a batch up for one update it cannot read, and tells nobody that it
only retries.
"""

import asyncio
from typing import Final

from telegram import error as sdk

from adapters.connection import Connection
from adapters.telegram.client import Client
from adapters.telegram.feeding import Feed
from adapters.telegram.recovery import Recovery, is_webhook
from gateway.ports import Clock

HOLD_SECONDS: Final = 25
"""How long Telegram may hold an empty answer back."""


async def poll(
    client: Client,
    feed: Feed,
    *,
    connection: Connection,
    clock: Clock,
    caught_up: asyncio.Event,
) -> None:
    """Feed updates until cancelled; `caught_up` is set while nothing is known to wait."""
    recovery = Recovery(connection)
    offset, hold = 0, 0
    while True:
        try:
            batch = await client.poll(offset=offset, hold=hold)
        except sdk.TelegramError as error:
            # After a failure the first answer must tell at once whether it works again.
            hold = 0
            await clock.sleep(recovery.failed(error))
            if isinstance(error, sdk.Conflict) and is_webhook(error):
                await _drop_webhook(client)
            continue
        recovery.worked()
        connection.heard()
        if batch.full:
            caught_up.clear()
            feed.backlog(waits=True)
        await feed.take(batch.updates)
        # Only now it is received; a store that could not write is over as well.
        connection.heard()
        if batch.last is not None:
            offset = batch.last + 1
        if not batch.full:
            caught_up.set()
            feed.backlog(waits=False)
        hold = 0 if batch.full else HOLD_SECONDS


async def _drop_webhook(client: Client) -> None:
    try:
        await client.bot.delete_webhook()
    except sdk.TelegramError:
        # The next poll says what is wrong.
        return
