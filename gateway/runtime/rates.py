"""How much people and chats may ask of us: messages in a minute, answers to bots, tokens in a day.

Kept in memory: after a restart everybody begins anew. What is over a rate waits; it is not lost.
"""

import asyncio
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Final, Generic, TypeVar

from gateway.domain.ids import Actor, Place
from gateway.ports import Books, Clock
from gateway.runtime.config import RateConfig

MINUTE_SECONDS: Final = 60.0
LONGEST_HOLD_SECONDS: Final = 60.0
NOTHING_SECONDS: Final = 0.001
"""What sums of fractions may be off by."""
MAX_REMEMBERED: Final = 10_000
BOT_TURNS: Final = 5
"""Messages of bots that are answered in a chat before a person has to say something there."""

Value = TypeVar("Value")


class _Recent(Generic[Value]):
    """A value for each of the keys that were used last."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, Value] = OrderedDict()

    def get(self, key: str, default: Value) -> Value:
        return self._values.get(key, default)

    def put(self, key: str, value: Value) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > MAX_REMEMBERED:
            self._values.popitem(last=False)

    def drop(self, key: str) -> None:
        self._values.pop(key, None)


class Rate:
    """At most so many a minute for each key, which may come at once; 0 is no limit."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._clock = clock
        self._apart = MINUTE_SECONDS / per_minute if per_minute > 0 else 0.0
        self._burst = MINUTE_SECONDS - self._apart
        self._due = _Recent[float]()

    def take(self, key: str) -> float:
        """Count one and return how many seconds it is over the rate, 0 when it is within.

        However many there are, none is further over than `LONGEST_HOLD_SECONDS`.
        """
        if not self._apart:
            return 0.0
        now = self._clock.monotonic()
        due = max(self._due.get(key, now), now)
        over = min(due - now - self._burst, LONGEST_HOLD_SECONDS)
        if over < LONGEST_HOLD_SECONDS:
            self._due.put(key, due + self._apart)
        return over if over > NOTHING_SECONDS else 0.0


class Told:
    """Who was told of something, so that it is said once until they were quiet for a while.

    `from_last`: the while begins when they were told, whatever they did since.
    """

    def __init__(self, clock: Clock, *, quiet_seconds: float, from_last: bool = False) -> None:
        self._clock = clock
        self._quiet = quiet_seconds
        self._from_last = from_last
        self._last = _Recent[float]()

    def is_news(self, key: str) -> bool:
        """Say whether `key` must be told; asking is what they do."""
        now = self._clock.monotonic()
        last = self._last.get(key, now - self._quiet)
        is_news = now - last >= self._quiet
        if is_news or not self._from_last:
            self._last.put(key, now)
        return is_news


class BotLoops:
    """Cuts off bots that only answer each other."""

    def __init__(self) -> None:
        self._answered = _Recent[int]()

    def is_loop(self, sender: Actor, place: Place) -> bool:
        """Count a message; True when so many of bots came in a row that this one is not answered."""
        key = f"{place.platform}@{place.account}:{place.chat}:{place.thread}"
        if not sender.is_bot:
            self._answered.drop(key)
            return False
        count = self._answered.get(key, 0)
        if count < BOT_TURNS:
            self._answered.put(key, count + 1)
        return count >= BOT_TURNS


class Quota:
    """The model tokens of a person in a day, which begins at midnight UTC; 0 is no limit."""

    def __init__(self, per_day: int, books: Books, clock: Clock) -> None:
        self._per_day = per_day
        self._books = books
        self._clock = clock
        self._told = _Recent[datetime]()
        # What arrives together is asked about in its order, and so stored in its order.
        self._turn = asyncio.Lock()

    async def is_used_up(self, actor: Actor) -> bool:
        """Say whether `actor` has had today's tokens."""
        if self._per_day <= 0:
            return False
        async with self._turn:
            used = await self._books.usage(since=self._today(), actor=actor)
        return sum(used.values()) >= self._per_day

    def is_news(self, actor: Actor) -> bool:
        """Say whether `actor` was not told yet today, and note that they are now."""
        today = self._today()
        is_news = self._told.get(str(actor), datetime.min.replace(tzinfo=UTC)) < today
        self._told.put(str(actor), today)
        return is_news

    def _today(self) -> datetime:
        now = self._clock.now().astimezone(UTC)
        return now.replace(hour=0, minute=0, second=0, microsecond=0)


class Pace:
    """The message rates of `access.rate`: of each person, and of each chat."""

    def __init__(self, config: RateConfig, clock: Clock) -> None:
        self._config = config
        self._people = Rate(config.user_per_minute, clock)
        self._chats = Rate(config.chat_per_minute, clock)
        self._told = Told(clock, quiet_seconds=MINUTE_SECONDS)

    def over(self, sender: Actor, place: Place) -> float:
        """Count a message and return how many seconds its turn has to wait, 0 for none."""
        chat = f"{place.platform}@{place.account}:{place.chat}"
        return max(self._people.take(str(sender)), self._chats.take(chat))

    def news(self, sender: Actor, place: Place) -> str:
        """Return what somebody who is over a rate is to be told, "" when they know already."""
        key = f"{sender} {place.platform}@{place.account}:{place.chat}"
        if not self._told.is_news(key):
            return ""
        limits = f"{self._config.user_per_minute} messages a minute from one person"
        if not self._config.user_per_minute:
            limits = f"{self._config.chat_per_minute} messages a minute in one chat"
        elif self._config.chat_per_minute:
            limits += f" and {self._config.chat_per_minute} in one chat"
        return f"That is a lot at once: I take {limits}. What is over waits and is answered then."
