"""What was said while nobody listened: read from the history, in its order, and handed over like the rest.

Slack keeps nothing for an app whose sockets are down, so the newest message we know of in a chat or
thread is where reading begins.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adapters.slack.client import Client
from adapters.slack.errors import Refused
from adapters.slack.feeding import Feed
from adapters.slack.ids import PLATFORM, is_direct, is_ts, thread_of
from gateway.domain.ids import ChatType, Place
from gateway.domain.message import CommandGiven, InboundEvent, InboundMessage
from gateway.ports import Clock
from gateway.ports.reading import Inbox

logger = logging.getLogger(__name__)

MAX_PLACES: Final = 200
"""Conversations whose history is read after a silence, those of late first."""
LOOKED_AT: Final = 16
"""Of these, in a look while all seems well."""
MAX_PAGES: Final = 10
PAGE: Final = 200
SETTLED_SECONDS: Final = 10.0
"""A message younger than that may still be on its way to us."""
KINDS: Final = "im,mpim,public_channel,private_channel"

Json = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class _Chat:
    """From where on a chat and its threads are read."""

    kind: str
    since: str = ""
    threads: dict[str, str] = field(default_factory=dict[str, str])


class Missed:
    """Implements `History` for one account."""

    def __init__(self, client: Client, feed: Feed, inbox: Inbox, clock: Clock) -> None:
        self._client = client
        self._feed = feed
        self._inbox = inbox
        self._clock = clock

    async def catch_up(self, *, all_chats: bool) -> int:
        """Hand over what nobody told us of, oldest first; returns how many messages these were.

        `all_chats`: also those nobody has written to us in yet, and however old it is. Else only
        what should have come by now counts, and is handed over.

        Raises:
            AdapterError: Slack did not answer.
        """
        chats = await self._chats(limit=MAX_PLACES if all_chats else LOOKED_AT)
        if all_chats and chats:
            await self._add_others(chats)
        missed = 0
        for name, chat in chats.items():
            found = await self._said(name, chat, others=all_chats)
            for message in sorted(found.values(), key=lambda each: str(each["ts"])):
                event = await self._feed.read_old(message, name, chat.kind)
                if event is not None and self._is_news(event, all_chats=all_chats):
                    missed += 1
                    await self._feed.catch_up(event)
        if missed:
            logger.info("%d messages on Slack were taken from the history", missed)
        return missed

    async def _chats(self, *, limit: int) -> dict[str, _Chat]:
        chats: dict[str, _Chat] = {}
        for place, newest in await self._inbox.last_heard(
            PLATFORM, self._feed.us.account, limit=limit
        ):
            chat = chats.setdefault(place.chat, _Chat(kind=_kind(place)))
            known = newest if is_ts(newest) else ""
            thread = thread_of(place)
            if thread is not None:
                chat.threads[thread] = max(known, thread)
            # The first message of a thread stands in the channel itself.
            chat.since = max(chat.since, thread or known)
        for (name, thread), newest in self._feed.heard.items():
            if name in chats and thread in chats[name].threads:
                chats[name].threads[thread] = max(newest, chats[name].threads[thread])
            elif name in chats and not thread:
                chats[name].since = max(newest, chats[name].since)
        return chats

    async def _add_others(self, chats: dict[str, _Chat]) -> None:
        """Add the chats we are in and know nothing of; they are read from our last sign of life on."""
        newest = max(max([chat.since, *chat.threads.values()]) for chat in chats.values())
        found, _ = await self._client.pages(
            "users.conversations",
            "channels",
            most=MAX_PAGES,
            types=KINDS,
            exclude_archived="true",
            limit=PAGE,
        )
        for channel in found:
            kind = "im" if channel.get("is_im") else "mpim" if channel.get("is_mpim") else "channel"
            chats.setdefault(str(channel["id"]), _Chat(kind=kind, since=newest))

    async def _said(self, name: str, chat: _Chat, *, others: bool) -> dict[str, Json]:
        """Return what was said in a chat and its threads, by its id."""
        found: dict[str, Json] = {}
        threads = dict(chat.threads)
        if chat.since:
            for message in await self._read("conversations.history", name, oldest=chat.since):
                found[str(message["ts"])] = message
                if others and str(message.get("latest_reply") or ""):
                    threads.setdefault(str(message["ts"]), chat.since)
        for thread, since in threads.items():
            for message in await self._read("conversations.replies", name, oldest=since, ts=thread):
                if str(message["ts"]) > since:
                    found[str(message["ts"])] = message
        return found

    async def _read(self, method: str, channel: str, **values: str) -> Sequence[Json]:
        try:
            messages, whole = await self._client.pages(
                method, "messages", most=MAX_PAGES, channel=channel, limit=PAGE, **values
            )
        except Refused as error:
            # We are not in there any more, or the thread is gone.
            logger.debug("the history of %s cannot be read: %s", channel, error)
            return ()
        if not whole:
            logger.warning(
                "more was said in %s than is read; the oldest of it is passed over", channel
            )
        return messages

    def _is_news(self, event: InboundEvent, *, all_chats: bool) -> bool:
        if not isinstance(event, InboundMessage | CommandGiven):
            return False
        age = (self._clock.now() - event.sent_at).total_seconds()
        return all_chats or (not self._feed.has_heard(event) and age >= SETTLED_SECONDS)


def _kind(place: Place) -> str:
    if is_direct(place.chat):
        return "im"
    return "mpim" if place.chat_type is ChatType.GROUP else "channel"
