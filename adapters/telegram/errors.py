"""What python-telegram-bot raises, as ours. The token never gets into a text."""

from datetime import timedelta
from typing import Final

import httpx
from telegram import error as sdk

from adapters.telegram.ids import PLATFORM
from gateway.domain.errors import (
    AdapterError,
    AdapterUnauthorized,
    DeliveryDeferred,
    DeliveryRejected,
    DeliveryUnsure,
)

NOT_SENT_SECONDS: Final = 2.0
"""How long a call waits that never left: the service could not be reached."""

_NEVER_LEFT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


def translate(error: sdk.TelegramError) -> AdapterError:
    """Return our error for a failed call to the Bot API.

    A call that never reached the service is put off; one without an answer may have had its effect.
    """
    if isinstance(error, sdk.RetryAfter):
        return DeliveryDeferred(PLATFORM, retry_seconds(error))
    if isinstance(error, sdk.InvalidToken):
        return AdapterUnauthorized(PLATFORM, "the token is not valid (any more)")
    if isinstance(error, sdk.BadRequest | sdk.Forbidden | sdk.ChatMigrated):
        return DeliveryRejected(PLATFORM, error.message)
    if never_left(error):
        return DeliveryDeferred(PLATFORM, NOT_SENT_SECONDS)
    return DeliveryUnsure(PLATFORM, cause_of(error))


def never_left(error: sdk.TelegramError) -> bool:
    """Whether the request certainly had no effect, because it was never sent."""
    return isinstance(error.__cause__, _NEVER_LEFT)


def cause_of(error: sdk.TelegramError) -> str:
    """Return what went wrong with a connection, without the address: it holds the token."""
    if isinstance(error, sdk.TimedOut):
        return "no answer in time"
    cause = error.__cause__
    if cause is None or isinstance(cause, sdk.TelegramError):
        # What Telegram says; behind the first sentence comes an answer that could not be read.
        return error.message.partition(". ")[0][:200]
    return type(cause).__name__


def retry_seconds(error: sdk.RetryAfter) -> float:
    """Return how long the service wants us to wait."""
    wait = error.retry_after
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)


def says(error: sdk.TelegramError, *fragments: str) -> bool:
    """Whether the description holds one of these words of Telegram's."""
    text = error.message.lower()
    return any(fragment in text for fragment in fragments)


def is_not_modified(error: sdk.BadRequest) -> bool:
    """Whether an edit changed nothing because the message reads so already."""
    return says(error, "message is not modified")


def is_unknown_message(error: sdk.BadRequest) -> bool:
    """Whether an edit names a message that is not in the chat."""
    return says(error, "message to edit not found", "message_id_invalid")


def is_gone(error: sdk.BadRequest) -> bool:
    """Whether a message that is to be taken away is not there (any more)."""
    return says(error, "message to delete not found", "message_id_invalid")


def is_lost_topic(error: sdk.BadRequest) -> bool:
    """Whether the topic is gone."""
    return says(error, "message thread not found", "topic_deleted")


def is_bad_markup(error: sdk.BadRequest) -> bool:
    """Whether the formatting, not the text, is what Telegram cannot take."""
    return says(error, "can't parse", "entity", "entities") and not says(error, "keyboard")
