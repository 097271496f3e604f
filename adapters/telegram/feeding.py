"""Hands updates to the gateway so that none is lost, none goes twice, and chats keep their order.

A batch is handed over at once: the store takes events in the order they are given and commits
them together, which a night's backlog needs. What it could not take is given again, in order.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from telegram import Update

from adapters.connection import Connection
from adapters.telegram.albums import Albums
from adapters.telegram.ids import PLATFORM, SHARED_COUNTER, counter_of, is_private
from adapters.telegram.inbound import (
    Migration,
    Us,
    asked_about,
    event_of,
    message_id_of,
    migration_of,
    position_of,
)
from gateway.domain.delivery import SentMessage
from gateway.domain.errors import StoreBroken, StoreBusy
from gateway.domain.message import InboundEvent
from gateway.ports import Clock, EventSink

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS: Final = 0.2
LONGEST_WAIT_SECONDS: Final = 10.0
SEEN_KEPT: Final = 4_000

MoveChat = Callable[[Migration], Awaitable[None]]
FindSent = Callable[[str, int], Awaitable[SentMessage | None]]
Value = TypeVar("Value")

_Given = tuple[InboundEvent, "tuple[str, str] | None"]


class Seen:
    """The message ids that arrived in this run, by the counter they come from."""

    def __init__(self) -> None:
        self._ids: dict[str, deque[int]] = {}
        self.small_groups = False
        """Whether a group was heard from that shares its counter with private chats."""

    def note(self, chat: str, message: int) -> None:
        """Remember an id."""
        self.small_groups |= counter_of(chat) == SHARED_COUNTER and not is_private(chat)
        self._ids.setdefault(counter_of(chat), deque(maxlen=SEEN_KEPT)).append(message)

    def of(self, counter: str) -> frozenset[int]:
        """Return what is remembered of a counter."""
        return frozenset(self._ids.get(counter, ()))


class Feed:
    """Feeds one account's updates to a sink; returns only once they are stored."""

    def __init__(
        self,
        *,
        sink: EventSink,
        us: Us,
        find_sent: FindSent,
        move_chat: MoveChat,
        connection: Connection,
        clock: Clock,
        seen: Seen,
    ) -> None:
        self._sink = sink
        self._us = us
        self._find_sent = find_sent
        self._move_chat = move_chat
        self._connection = connection
        self._clock = clock
        self._seen = seen
        self._albums = Albums()

    def backlog(self, *, waits: bool) -> None:
        """Say whether more of what we missed is about to come."""
        self._sink.backlog(platform=PLATFORM, account=self._us.account, waits=waits)

    async def take(self, updates: Sequence[Update], *, patient: bool = True) -> bool:
        """Store the updates; a move of a chat comes between what was before and after it.

        Not `patient`: False at the first trouble, when whoever sent them will send them again.
        """
        waiting: list[_Given] = []
        for update in updates:
            place = message_id_of(update)
            if place is not None:
                self._seen.note(*place)
            move = migration_of(update)
            if move is not None:
                if not await self._store(waiting, patient=patient):
                    return False
                waiting = []
                await self._persist(lambda move=move: self._move_chat(move))
            event = self._albums.meant(await self._event(update))
            if event is not None:
                waiting.append((event, position_of(update)))
        return await self._store(waiting, patient=patient)

    async def _event(self, update: Update) -> InboundEvent | None:
        asked = asked_about(update, self._us)
        sent = None
        if asked is not None:
            sent = await self._persist(lambda: self._find_sent(*asked))
        try:
            return event_of(update, self._us, now=self._clock.now(), sent=sent)
        except (ValueError, TypeError, KeyError):
            # Nothing would be different the next time, and the ones behind it must go on.
            logger.exception("update %d means nothing here; passed over", update.update_id)
            return None

    async def _store(self, given: Sequence[_Given], *, patient: bool) -> bool:
        """Store events in their order; the last one says that all before it are stored."""
        if not given:
            return True
        *before, (last, position) = given
        for part in ([(event, None) for event, _ in before], [(last, position)]):
            if not await self._store_all(part, patient=patient):
                return False
        return True

    async def _store_all(self, given: Sequence[_Given], *, patient: bool) -> bool:
        wait = FIRST_WAIT_SECONDS
        left = await self._hand_over(given)
        while left:
            if not patient:
                return False
            await self._clock.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)
            # One first, to see whether it works again: what follows must not overtake it.
            if not await self._hand_over(left[:1]):
                left = await self._hand_over(left[1:])
                wait = FIRST_WAIT_SECONDS
        return True

    async def _hand_over(self, given: Sequence[_Given]) -> Sequence[_Given]:
        """Give events to the sink in their order; return those it could not take."""
        refused = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            stored = [
                tasks.create_task(self._emit(*item, refused), name=f"intake:{item[0].dedupe}")
                for item in given
            ]
        return [item for item, task in zip(given, stored, strict=True) if not task.result()]

    async def _emit(
        self, event: InboundEvent, position: tuple[str, str] | None, refused: asyncio.Event
    ) -> bool:
        """Return whether an event is dealt with; False when it must be given again."""
        if refused.is_set():
            return False
        try:
            await self._sink.emit(event, position=position)
        except (StoreBusy, StoreBroken) as error:
            refused.set()
            self._connection.degraded(str(error))
            return False
        except Exception:
            # It would fail again for ever, and everything behind it would never be read.
            logger.exception("update %s cannot be stored; passed over", event.dedupe)
        return True

    async def _persist(self, ask: Callable[[], Awaitable[Value]]) -> Value:
        wait = FIRST_WAIT_SECONDS
        while True:
            try:
                return await ask()
            except (StoreBusy, StoreBroken) as error:
                self._connection.degraded(str(error))
            await self._clock.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)
