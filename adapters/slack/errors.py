"""What Slack answers instead of success, as ours. Tokens never get into a text."""

from collections.abc import Mapping
from typing import Any, Final, cast

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from adapters.slack.ids import PLATFORM
from gateway.domain.errors import (
    AdapterError,
    AdapterUnauthorized,
    DeliveryDeferred,
    DeliveryRejected,
    DeliveryUnsure,
)

NOT_SENT_SECONDS: Final = 2.0
"""How long a call waits that never left: the service could not be reached."""
TOO_MANY: Final = 429
NOTHING: Final[Mapping[str, Any]] = {}
FAILING: Final = 500

_UNAUTHORIZED: Final = frozenset(
    ("account_inactive", "invalid_auth", "not_authed", "token_expired", "token_revoked")
)
_AGAIN: Final = frozenset(("fatal_error", "internal_error", "request_timeout"))
"""Slack says of these itself that some of it may have been done."""
_DOWN: Final = frozenset(("service_unavailable", "team_added_to_org", "ratelimited"))
_WORDS: Final[Mapping[str, str]] = {
    "not_in_channel": "the bot is not in that channel: invite it with /invite",
    "channel_not_found": "there is no such channel, or the bot may not see it",
    "is_archived": "that channel is archived",
    "user_not_found": "there is no such person",
    "cannot_dm_bot": "that is a bot, which takes no direct message",
    "restricted_action": "the workspace does not let the bot write there",
    "thread_not_found": "that thread is gone",
}
_MARKUP: Final = frozenset(
    ("invalid_blocks", "invalid_blocks_format", "invalid_attachments", "msg_blocks_too_long")
)


class Refused(DeliveryRejected):
    """Slack will never take this; `code` is its own word for why."""

    def __init__(self, code: str, *, needed: str = "") -> None:
        said = _WORDS.get(code, "")
        if code == "missing_scope":
            said = f"the app lacks the scope {needed}: add it and install the app again"
        super().__init__(PLATFORM, f"{said} ({code})" if said else code)
        self.code = code

    @property
    def is_markup(self) -> bool:
        """Whether the looks, not the words, are what Slack cannot take."""
        return self.code in _MARKUP


def translate(error: Exception) -> AdapterError:
    """Return our error for a failed call.

    A call that never reached the service is put off; one without an answer may have had its effect.
    """
    if isinstance(error, aiohttp.ClientConnectorError):
        return DeliveryDeferred(PLATFORM, NOT_SENT_SECONDS)
    if isinstance(error, SlackApiError):
        return _refused(error)
    if isinstance(error, TimeoutError):
        return DeliveryUnsure(PLATFORM, "no answer in time")
    return DeliveryUnsure(PLATFORM, type(error).__name__)


def _refused(error: SlackApiError) -> AdapterError:
    # The SDK types neither its answer nor what is in it.
    answer: Any = error.response  # pyright: ignore[reportUnknownMemberType]
    status = int(getattr(answer, "status_code", 0) or getattr(answer, "status", 0) or 0)
    data: object = getattr(answer, "data", None)
    body = cast("Mapping[str, Any]", data) if isinstance(data, dict) else NOTHING
    code = str(body.get("error", ""))
    if status == TOO_MANY or code == "ratelimited":
        return DeliveryDeferred(PLATFORM, retry_seconds(getattr(answer, "headers", {})))
    if code in _UNAUTHORIZED:
        return AdapterUnauthorized(PLATFORM, code)
    if not code or status >= FAILING or code in _AGAIN:
        return DeliveryUnsure(PLATFORM, code or f"an answer that cannot be read ({status})")
    if code in _DOWN:
        return DeliveryDeferred(PLATFORM, NOT_SENT_SECONDS)
    return Refused(code, needed=str(body.get("needed", "")))


def retry_seconds(headers: Mapping[str, str]) -> float:
    """Return how long Slack wants us to wait."""
    text = next((value for key, value in headers.items() if key.lower() == "retry-after"), "")
    return float(text) if text.isdecimal() else 30.0


FAILURES: Final = (SlackClientError, aiohttp.ClientError, TimeoutError, ValueError)
"""What the SDK raises for a call that did not succeed."""
