"""Hands what one workspace tells us to the gateway: stored before it is acknowledged, in order in a chat."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from adapters.connection import Connection
from adapters.slack.buttons import OPENS_FORM
from adapters.slack.ids import PLATFORM, is_ts
from adapters.slack.inbound import Us, author_of, event_of
from adapters.slack.modals import Modals, is_modal
from adapters.slack.people import People
from adapters.slack.welcome import Welcome
from gateway.domain.errors import StoreBroken, StoreBusy
from gateway.domain.ids import Place
from gateway.domain.message import InboundEvent
from gateway.ports import Clock, EventSink

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS: Final = 0.2
LONGEST_WAIT_SECONDS: Final = 10.0
HEARD_KEPT: Final = 10_000

Json = Mapping[str, Any]


class Feed:
    """Feeds one account's things to a sink."""

    def __init__(
        self,
        *,
        sink: EventSink,
        us: Us,
        people: People,
        modals: Modals,
        welcome: Welcome,
        connection: Connection,
        clock: Clock,
    ) -> None:
        self.us = us
        self.connection = connection
        self._sink = sink
        self._people = people
        self._modals = modals
        self._welcome = welcome
        self._clock = clock
        self._speakers: OrderedDict[str, str] = OrderedDict()
        self._heard_ids: OrderedDict[str, None] = OrderedDict()
        self._lanes: dict[str, tuple[asyncio.Lock, int]] = {}
        self.heard: dict[tuple[str, str], str] = {}
        """The newest message heard of in this run, by chat and thread, "" for the chat itself."""

    def backlog(self, *, waits: bool) -> None:
        """Say whether more of what we missed is about to come."""
        self._sink.backlog(platform=PLATFORM, account=self.us.account, waits=waits)

    async def take(self, body: Json) -> bool:
        """Do what something means; False when it must be told again."""
        async with self._lane(_chat_of(body)):
            await self._people.meet(author_of(body))
            if is_modal(body):
                event = self._modals.submitted(body, self.us, self._people.name, self._clock.now())
            elif _opens_form(body):
                await self._modals.open(body, self.us)
                return True
            elif _is_welcome(body):
                await self._welcome.show(cast("Json", body["event"]))
                return True
            else:
                event = self._read(body)
            return event is None or await self._emit(event)

    async def catch_up(self, event: InboundEvent) -> None:
        """Store what history tells; patiently, since nobody will tell it again."""
        wait = FIRST_WAIT_SECONDS
        while not await self._emit(event):
            await self._clock.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)

    async def read_old(self, message: Json, channel: str, kind: str) -> InboundEvent | None:
        """Return the event a message of the history would have been."""
        event = {**message, "type": "message", "channel": channel, "channel_type": kind}
        await self._people.meet(str(message.get("user") or ""))
        return self._read({"event": event})

    def _read(self, body: Json) -> InboundEvent | None:
        try:
            return event_of(body, self.us, now=self._clock.now(), name=self._people.name)
        except (ValueError, TypeError, KeyError, AttributeError):
            # Nothing would be different the next time, and the ones behind it must go on.
            kind = body.get("type")
            logger.exception("a %s of Slack's means nothing here; passed over", kind)
            return None

    async def _emit(self, event: InboundEvent) -> bool:
        try:
            await self._sink.emit(event)
        except (StoreBusy, StoreBroken) as error:
            self.connection.degraded(str(error))
            return False
        except Exception:
            # It would fail again for ever.
            logger.exception("%s cannot be stored; passed over", event.dedupe)
        self._note(event)
        return True

    def has_heard(self, event: InboundEvent) -> bool:
        """Whether a message came in this run already."""
        return event.native_id in self._heard_ids

    def last_speaker(self, place: Place) -> str:
        """Return who spoke last in a conversation, "" when nobody did in this run."""
        return self._speakers.get(place.session_key, "")

    def _note(self, event: InboundEvent) -> None:
        if not is_ts(event.native_id):
            return
        chat, thread = event.place.chat, event.place.thread
        self._speakers[event.place.session_key] = event.sender.id
        if len(self._speakers) > HEARD_KEPT:
            self._speakers.popitem(last=False)
        self._heard_ids[event.native_id] = None
        if len(self._heard_ids) > HEARD_KEPT:
            self._heard_ids.popitem(last=False)
        # The first message of a thread stands in the channel itself.
        for key in {(chat, thread), (chat, "" if thread == event.native_id else thread)}:
            self.heard[key] = max(self.heard.get(key, ""), event.native_id)

    @asynccontextmanager
    async def _lane(self, chat: str) -> AsyncGenerator[None]:
        """Keep the order in a chat; others go on beside it."""
        lock, waiting = self._lanes.get(chat) or (asyncio.Lock(), 0)
        self._lanes[chat] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._lanes[chat]
            if waiting == 1:
                del self._lanes[chat]
            else:
                self._lanes[chat] = (lock, waiting - 1)


def _chat_of(body: Json) -> str:
    event = cast("Json", body.get("event") or {})
    channel = cast("Json", body.get("channel") or {})
    return str(event.get("channel") or channel.get("id") or body.get("channel_id") or "")


def _opens_form(body: Json) -> bool:
    actions = cast("list[Json]", body.get("actions") or [{}])
    named = str(actions[0].get("action_id") or "")
    return body.get("type") == "block_actions" and named.startswith(OPENS_FORM)


def _is_welcome(body: Json) -> bool:
    return cast("Json", body.get("event") or {}).get("type") == "assistant_thread_started"
