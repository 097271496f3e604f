"""Finds out whether a send without an answer arrived, by editing what it may have become (DESIGN §2).

An edit with the same content answers "not modified" where it arrived, "not found" where nothing
is, "can't be edited" on somebody else's message. Only ids nobody accounts for are tried.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count, islice
from typing import Final

from telegram import Message
from telegram import error as sdk

from adapters.telegram.errors import (
    cause_of,
    is_bad_markup,
    is_not_modified,
    is_unknown_message,
    retry_seconds,
)
from adapters.telegram.feeding import Seen
from adapters.telegram.ids import PLATFORM, SHARED_COUNTER, SentIds, counter_of, is_private
from gateway.domain.delivery import Delivery, KnownId, Neighbours, Receipt
from gateway.domain.errors import AdapterUnauthorized, DeliveryUnsure
from gateway.ports import Clock
from gateway.ports.reading import SentMessages

MAX_PROBES: Final = 20
CATCH_UP_SECONDS: Final = 20.0
"""How long is waited until the updates of before are read: their ids must not be tried."""
PATIENCE_SECONDS: Final = 60.0
"""How long an unreachable service is asked again; the outbox waits a little longer."""
FIRST_WAIT_SECONDS: Final = 0.5
LONGEST_WAIT_SECONDS: Final = 8.0
EMPTY_RUN: Final = 4
"""So many ids without a message in a row are the end of a chat that counts its own."""
SPARE: Final = 2
"""Ids tried beyond those that open sends account for."""


class Probe(Enum):
    """What is found under an id."""

    OURS = auto()
    OTHER = auto()
    NOTHING = auto()


TryEdit = Callable[[int, bool], Awaitable["Message | bool"]]
"""Edit the message of that id to what was to be sent, with its looks or without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where to look: `earlier` is the last id before the send, `known` are not it.

    `certain`: whatever is not found in `candidates` did not arrive.
    """

    candidates: Sequence[int]
    certain: bool


class Settling:
    """Settles one send at a time for one account."""

    def __init__(
        self, store: SentMessages, seen: Seen, caught_up: asyncio.Event, clock: Clock
    ) -> None:
        self._store = store
        self._seen = seen
        self._caught_up = caught_up
        self._clock = clock

    async def settle(
        self, delivery: Delivery, edit: TryEdit, *, reads_all: bool, exact: bool = False
    ) -> Receipt | None:
        """Return the receipt of a send that arrived, None when it certainly did not.

        `reads_all`: the bot sees every message of its groups. `exact`: only an unchanged message is
        it, because two of this kind can differ in more than an edit changes.

        Raises:
            DeliveryUnsure: It cannot be found out.
        """
        chat = delivery.place.chat
        counter = counter_of(chat)
        caught_up = counter != SHARED_COUNTER or await self._until_caught_up()
        around = await self._store.neighbours(delivery.id)
        earlier = _ids(item for item in around.known if item.earlier and _in(item, counter))
        if not earlier:
            raise DeliveryUnsure(PLATFORM, "no message before it is known")
        known = _ids(item for item in around.known if _in(item, counter))
        known |= self._seen.of(counter)
        probing = _Probing(edit, self._clock, exact=exact, thread=delivery.place.thread)
        if counter != SHARED_COUNTER:
            return await _walk(probing, max(earlier), known)
        groups = self._seen.small_groups or any(
            not is_private(item.chat) and _in(item, counter) for item in around.known
        )
        # What it is not told of takes ids as well.
        blind = groups and not reads_all
        ground = _ground(max(earlier), known, around, certain=caught_up and not blind)
        return await _search(probing, ground)

    async def _until_caught_up(self) -> bool:
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                await self._caught_up.wait()
        except TimeoutError:
            return False
        return True


def _ids(known: Iterable[KnownId]) -> frozenset[int]:
    parsed = (SentIds.parse(item.native_id) for item in known)
    return frozenset(message for ids in parsed if ids is not None for message in ids.all)


def _in(item: KnownId, counter: str) -> bool:
    return counter_of(item.chat) == counter


def _ground(base: int, known: frozenset[int], around: Neighbours, *, certain: bool) -> Ground:
    """Return the free ids between the last one before the send and the next that will be given."""
    top = max(known | {base})
    reach = top + (around.unsettled + SPARE if certain else MAX_PROBES)
    free = (number for number in range(base + 1, reach + 1) if number not in known)
    tried = tuple(islice(free, MAX_PROBES))
    whole = next(free, None) is None
    return Ground(candidates=tried, certain=certain and whole)


async def _search(probing: "_Probing", ground: Ground) -> Receipt | None:
    """Try the free ids of the counter that private chats share; other chats' are not found here."""
    for number in ground.candidates:
        if await probing.probe(number) is Probe.OURS:
            return Receipt(native_id=str(number))
    if ground.certain:
        return None
    raise DeliveryUnsure(PLATFORM, "too many messages may be it")


async def _walk(probing: "_Probing", base: int, known: frozenset[int]) -> Receipt | None:
    """Walk through a chat that counts its own messages, until it ends."""
    top = max(known | {base})
    empty = tried = 0
    for number in count(base + 1):
        if number in known:
            empty = 0
            continue
        if number > top and empty >= EMPTY_RUN:
            return None
        if tried >= MAX_PROBES:
            break
        tried += 1
        found = await probing.probe(number)
        if found is Probe.OURS:
            return Receipt(native_id=str(number))
        empty = empty + 1 if found is Probe.NOTHING else 0
    raise DeliveryUnsure(PLATFORM, "too many messages may be it")


class _Probing:
    """Asks about single ids, patiently while the service is away."""

    def __init__(self, edit: TryEdit, clock: Clock, *, exact: bool, thread: str) -> None:
        self._edit = edit
        self._clock = clock
        self._exact = exact
        self._thread = thread
        self._until = clock.monotonic() + PATIENCE_SECONDS

    async def probe(self, message: int) -> Probe:
        """Return what is under an id.

        Raises:
            DeliveryUnsure: The service does not say.
        """
        wait = FIRST_WAIT_SECONDS
        formatted = True
        while True:
            try:
                return self._judge(await self._edit(message, formatted))
            except sdk.RetryAfter as error:
                await self._pause(retry_seconds(error), error)
            except sdk.BadRequest as error:
                if formatted and is_bad_markup(error):
                    formatted = False
                    continue
                return _refused(error)
            except sdk.InvalidToken as error:
                raise AdapterUnauthorized(PLATFORM, "the token is not valid") from error
            except (sdk.Forbidden, sdk.ChatMigrated) as error:
                raise DeliveryUnsure(PLATFORM, error.message) from error
            except sdk.TelegramError as error:
                await self._pause(wait, error)
                wait = min(wait * 2, LONGEST_WAIT_SECONDS)

    def _judge(self, edited: Message | bool) -> Probe:
        """Judge a message that is ours and read differently."""
        if self._exact:
            return Probe.OTHER
        thread = str(edited.message_thread_id or "") if isinstance(edited, Message) else ""
        return Probe.OTHER if self._thread and thread not in ("", self._thread) else Probe.OURS

    async def _pause(self, seconds: float, error: sdk.TelegramError) -> None:
        if self._clock.monotonic() + seconds > self._until:
            raise DeliveryUnsure(PLATFORM, cause_of(error)) from error
        await self._clock.sleep(seconds)


def _refused(error: sdk.BadRequest) -> Probe:
    if is_not_modified(error):
        return Probe.OURS
    return Probe.NOTHING if is_unknown_message(error) else Probe.OTHER
