"""A reply while it is made: Slack's own streams in threads, a message that is edited elsewhere.

What is shown so is cosmetic and is taken away again; the reply itself is a message of its own.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from adapters.slack.client import Client
from adapters.slack.errors import Refused
from adapters.slack.ids import is_direct, thread_of
from adapters.slack.markdown import escape
from gateway.domain.delivery import Delivery
from gateway.domain.errors import AdapterError
from gateway.domain.ids import Place

logger = logging.getLogger(__name__)

MAX_PIECE: Final = 11_000
KEPT: Final = 200
_OVER: Final = frozenset(("message_not_in_streaming_state", "message_not_found"))


class StreamMessages:
    """The streams of one account; `recipient` names whom a reply in a channel is for."""

    def __init__(self, client: Client, recipient: Callable[[Place], tuple[str, str]]) -> None:
        self._client = client
        self._recipient = recipient
        self._shown: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._refused = False

    async def start(self, delivery: Delivery, chat: str) -> str | None:
        """Begin a stream; None where there can be none, and a message stands for the reply.

        Raises:
            AdapterError: Slack did not answer, or wants us to wait.
        """
        thread = thread_of(delivery.place)
        user, team = self._recipient(delivery.place)
        if self._refused or thread is None or not (user or is_direct(chat)):
            return None
        whom = {} if is_direct(chat) else {"recipient_user_id": user, "recipient_team_id": team}
        text = delivery.body[:MAX_PIECE]
        try:
            answer = await self._client.post(
                "chat.startStream",
                channel=chat,
                thread_ts=thread,
                markdown_text=escape(text),
                **whom,
            )
        except Refused as error:
            # An app or a service without streams shows replies in the other way from now on.
            self._refused = error.code in (
                "unknown_method",
                "missing_scope",
                "not_allowed_token_type",
            )
            logger.debug("a reply is not streamed: %s", error)
            return None
        ts = str(answer["ts"])
        self._shown[chat, ts] = text
        if len(self._shown) > KEPT:
            self._shown.popitem(last=False)
        return ts

    def is_open(self, chat: str, ts: str) -> bool:
        """Whether a message is a stream of this run."""
        return (chat, ts) in self._shown

    async def append(self, chat: str, ts: str, text: str) -> None:
        """Let a stream say what is new; what it said cannot be changed.

        Raises:
            AdapterError: It cannot be shown.
        """
        shown = self._shown[chat, ts]
        if not text.startswith(shown) or text == shown:
            return
        piece = text[len(shown) :][:MAX_PIECE]
        await self._client.post(
            "chat.appendStream", channel=chat, ts=ts, markdown_text=escape(piece)
        )
        self._shown[chat, ts] = shown + piece

    async def stop(self, chat: str, ts: str) -> None:
        """End a stream, also of an earlier run; a message that is none stays as it is.

        Raises:
            AdapterError: Slack did not answer.
        """
        known = self._shown.pop((chat, ts), None)
        try:
            await self._client.post("chat.stopStream", channel=chat, ts=ts)
        except Refused as error:
            if known is not None and error.code not in _OVER:
                logger.debug("a stream could not be ended: %s", error)
        except AdapterError:
            if known is not None:
                raise
