"""The one object behind the server: the world, its clock, the queue of updates, what was called."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fakes.telegram.faults import Faults
from tests.fakes.telegram.rates import Meter, Rates
from tests.fakes.telegram.schema import Schema, known_schema
from tests.fakes.telegram.state import Bot, Chat, Json, Update, World

_NOT_BY_DEFAULT: Final = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
KEPT_SECONDS: Final = 24 * 3600
_HANDED_OUT_KEPT: Final = 1000


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of a bot: what was asked, and what came of it (0 while it runs or was cut off)."""

    at: float
    method: str
    values: Json
    chat: int | None = None
    status: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a test may want shorter or smaller than Telegram has it."""

    answer_seconds: float = 15
    """How long a press can be answered. Telegram does not say; a client's spinner gives up then."""
    upload_bytes: int = 50_000_000
    photo_bytes: int = 10_000_000
    download_bytes: int = 20_000_000
    draft_seconds: float = 30
    webhook_retry_seconds: float = 0.05


@dataclass(kw_only=True)
class Service:
    """What the methods and the driver share."""

    rates: Rates = field(default_factory=Rates)
    limits: Limits = field(default_factory=Limits)
    world: World = field(default_factory=World)
    faults: Faults = field(default_factory=Faults)
    calls: list[Call] = field(default_factory=list[Call])
    violations: list[str] = field(default_factory=list[str])
    schema: Schema = field(default_factory=known_schema)

    def __post_init__(self) -> None:
        self.meter = Meter(rates=self.rates)
        self.closing = asyncio.Event()
        self.released = asyncio.Event()
        """Ends every hang."""
        self._change = asyncio.Event()
        self._polls: dict[int, int] = {}

    def now(self) -> float:
        return time.time() + self.world.ahead

    def advance(self, seconds: float) -> None:
        """Put the service's clock forward."""
        self.world.ahead += seconds
        self.changed()

    def violation(self, *problems: str) -> None:
        """Note what no program should do, or what this server cannot stand in for."""
        self.violations.extend(problems)

    def changed(self) -> None:
        """Let everybody who waits look again."""
        self._change.set()
        self._change = asyncio.Event()

    async def change(self, *, seconds: float) -> None:
        """Wait for the next change, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._change.wait()

    async def until(self, holds: Callable[[], Any], *, seconds: float = 10, what: str = "") -> Any:
        """Return what `holds()` says once it is true.

        Raises:
            AssertionError: it was not within `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                while not (found := holds()):
                    await self._change.wait()
                return found
        except TimeoutError:
            raise AssertionError(f"not within {seconds:g} s: {what or 'it'}") from None

    def emit(self, bot: Bot, chat: Chat, kind: str, payload: Json) -> Update | None:
        """Queue an update, None when the bot did not ask for its kind."""
        allowed = bot.allowed
        if kind not in allowed if allowed else kind in _NOT_BY_DEFAULT:
            return None
        bot.last_update += 1
        update = Update(
            id=bot.last_update, at=self.now(), queue=chat.id, kind=kind, payload=payload
        )
        self.violation(*self.schema.of_update(update.body))
        bot.updates.append(update)
        self.changed()
        return update

    def forget_old(self, bot: Bot) -> None:
        """Drop what nobody fetched for a day."""
        oldest = self.now() - KEPT_SECONDS
        if bot.updates and bot.updates[0].at < oldest:
            bot.updates = [update for update in bot.updates if update.at >= oldest]

    def confirm(self, bot: Bot, updates: list[Update]) -> None:
        """Take the updates from the queue: the bot has them."""
        if not updates:
            return
        done = {update.id for update in updates}
        bot.updates = [update for update in bot.updates if update.id not in done]
        bot.handed_out = (bot.handed_out + updates)[-_HANDED_OUT_KEPT:]
        self.changed()

    def take_poll(self, bot: Bot) -> int:
        """Become the one poller of a bot: whoever waited is terminated."""
        self._polls[bot.id] = turn = self._polls.get(bot.id, 0) + 1
        self.changed()
        return turn

    def is_polling(self, bot: Bot, turn: int) -> bool:
        return self._polls[bot.id] == turn
