"""Says of each event whether it is taken, and tells who must be told why it waits or is not.

What is decided is pure (`access`, `access_door`); here is what it takes to decide: who was let in,
which threads we were invited into, how much came lately. Stores no event.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from gateway.domain.delivery import Origin
from gateway.domain.errors import StoreBusy
from gateway.domain.message import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    InboundEvent,
    InboundMessage,
)
from gateway.domain.operations.deliveries import Enqueue, Enqueued
from gateway.domain.operations.inbound import Lane
from gateway.ports import Clock, Readers, Renderer
from gateway.runtime.access import Access
from gateway.runtime.access_door import Door, Strangers
from gateway.runtime.backlog import Backlog
from gateway.runtime.commands import QUEUE, RETRY, find_command, plain_name
from gateway.runtime.config import PersonRole, RateConfig
from gateway.runtime.pairing import PairingDesk
from gateway.runtime.rates import LONGEST_HOLD_SECONDS, BotLoops, Pace, Quota, Rate
from gateway.runtime.refusals import Refusal, Refusals
from gateway.runtime.wakeups import Wakeups

logger = logging.getLogger(__name__)

MAX_THREADS: Final = 10_000
STRANGERS_PRESSES: Final = 20
"""Presses a minute of one stranger that are refused visibly; the rest is dropped."""
ALWAYS_TAKEN: Final = frozenset({"stop", "approve", "deny"})
"""Commands that end or decide something: no rate holds them up."""

USED_UP: Final = (
    "You have used the {count} model tokens you have for one day. What you write is answered "
    "again after midnight UTC; commands work."
)


class NoticeStore(Protocol):
    """Where the words go."""

    async def enqueue(self, enqueue: Enqueue) -> Enqueued: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The event is taken; its turn begins no earlier than `not_before`, None is at once.

    `word` is what its sender has to be told once it is stored.
    """

    not_before: datetime | None = None
    word: str = ""


TAKEN: Final = Taken()


class Entrance:
    """One for the process; asked once for each event, in the order of arrival."""

    def __init__(
        self,
        *,
        access: Access,
        pairing: PairingDesk,
        store: NoticeStore,
        readers: Readers,
        renderers: Mapping[str, Renderer],
        backlog: Backlog,
        wakeups: Wakeups,
        clock: Clock,
        rate: RateConfig,
    ) -> None:
        self._access = access
        self._pairing = pairing
        self._store = store
        self._inbox = readers.inbox
        self._renderers = renderers
        self._backlog = backlog
        self._wakeups = wakeups
        self._per_day = rate.tokens_per_day
        self._pace = Pace(rate, clock)
        self._quota = Quota(rate.tokens_per_day, readers.books, clock)
        self._loops = BotLoops()
        self._presses = Rate(STRANGERS_PRESSES, clock)
        self._threads: OrderedDict[str, None] = OrderedDict()
        self.refusals = Refusals(clock)

    async def load(self) -> None:
        """Learn which threads we were called into before."""
        for key in reversed(await self._inbox.threads(limit=MAX_THREADS)):
            self._threads[key] = None

    async def judge(self, event: InboundEvent) -> Taken | None:
        """Return how an event is taken, None when it is refused; that is noted and told."""
        door = self._access.door(event.place)
        why = self._refusal(event, door)
        if why is not None:
            await self._turn_away(event, why, door)
            return None
        if door is None or not isinstance(event, InboundMessage | CommandGiven):
            return TAKEN
        self._follow(event, door)
        return await self._paced(event)

    def _refusal(self, event: InboundEvent, door: Door | None) -> Refusal | None:
        sender, place = event.sender, event.place
        if isinstance(event, ButtonPressed | FormSubmitted):
            # Judged by its question, so that a bystander gets a visible refusal and is audited.
            is_known = self._access.role(sender, place) is not PersonRole.STRANGER
            return None if is_known or not self._presses.take(str(sender)) else Refusal.RATE
        if not self._access.may_talk(sender, place):
            return Refusal.BOT if sender.is_bot else Refusal.STRANGER
        if door is None:
            return None
        if not door.is_meant(event, follows=place.session_key in self._threads):
            return Refusal.UNADDRESSED
        if isinstance(event, InboundMessage | CommandGiven) and self._loops.is_loop(sender, place):
            return Refusal.LOOP
        return None

    async def _turn_away(self, event: InboundEvent, why: Refusal, door: Door | None) -> None:
        self.refusals.note(event, why)
        if why is not Refusal.STRANGER or door is None or event.sender.is_chat:
            return
        speaks = isinstance(event, InboundMessage | CommandGiven)
        if speaks and door.strangers is Strangers.PAIR and door.is_direct(event.place):
            await self._pairing.offer(event.sender, event.place)

    def _follow(self, event: InboundMessage | CommandGiven, door: Door) -> None:
        if not event.mentions_us or not door.can_be_invited(event.place):
            return
        self._threads[event.place.session_key] = None
        self._threads.move_to_end(event.place.session_key)
        if len(self._threads) > MAX_THREADS:
            self._threads.popitem(last=False)

    async def _paced(self, event: InboundMessage | CommandGiven) -> Taken | None:
        sender, place = event.sender, event.place
        if _asks_a_model(event) and await self._quota.is_used_up(sender):
            self.refusals.note(event, Refusal.QUOTA)
            if self._quota.is_news(sender):
                await self.tell(event, USED_UP.format(count=self._per_day))
            return None
        if self._backlog.is_waiting((place.platform, place.account)):
            # Nobody said this just now, and all of it is one turn.
            return TAKEN
        over = self._pace.over(sender, place)
        if not over or _is_always_taken(event):
            return TAKEN
        word = self._pace.news(sender, place)
        if not _is_worked_off_at_once(event):
            return Taken(not_before=self._backlog.hold(place, over), word=word)
        if over < LONGEST_HOLD_SECONDS:
            return Taken(word=word)
        self.refusals.note(event, Refusal.RATE)
        await self.tell(event, word)
        return None

    async def tell(self, event: InboundEvent, words: str) -> None:
        """Tell a conversation of a limit, "" is nothing to tell."""
        renderer = self._renderers.get(event.place.platform)
        parts = renderer.text(words) if renderer is not None and words else ()
        if not parts:
            return
        note = Enqueue(
            place=event.place,
            group_key=f"entrance:{event.dedupe}",
            parts=parts,
            origin=Origin.NOTICE,
        )
        try:
            await self._store.enqueue(note)
        except StoreBusy as error:
            # The event itself is not to wait for this.
            logger.info("%s was not told of a limit: %s", event.sender, error)
            return
        self._wakeups.deliveries()


def _asks_a_model(event: InboundMessage | CommandGiven) -> bool:
    return isinstance(event, InboundMessage) or plain_name(event.name) in {QUEUE, RETRY}


def _is_worked_off_at_once(event: InboundMessage | CommandGiven) -> bool:
    command = find_command(event.name) if isinstance(event, CommandGiven) else None
    return isinstance(event, CommandGiven) and (command is None or command.lane is Lane.CONTROL)


def _is_always_taken(event: InboundMessage | CommandGiven) -> bool:
    command = find_command(event.name) if isinstance(event, CommandGiven) else None
    return command is not None and command.name in ALWAYS_TAKEN
