"""What was not let in: counted for ever, and logged with who, where and why. Never sees a text.

A flood must not become a flood of the log: of the same refusal a few lines a minute are written
out, and the rest as their number once the minute is over.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.domain.ids import Actor
from gateway.domain.message import InboundEvent
from gateway.ports import Clock

logger = logging.getLogger(__name__)

LINES_A_MINUTE: Final = 10
MINUTE_SECONDS: Final = 60.0
MAX_REMEMBERED: Final = 1_000
"""Senders whose lines are counted at once; beyond that the oldest are told and forgotten."""


class Refusal(StrEnum):
    """Why an event is not taken."""

    STRANGER = "stranger"
    BOT = "another bot"
    LOOP = "bots answering each other"
    UNADDRESSED = "not addressed"
    RATE = "too many"
    QUOTA = "tokens used up"


@dataclass(slots=True, kw_only=True)
class _Minute:
    began: float
    count: int = 0


class Refusals:
    """One for the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: Counter[tuple[str, Refusal]] = Counter()
        self._minutes: OrderedDict[tuple[str, str, Refusal], _Minute] = OrderedDict()

    @property
    def counts(self) -> Mapping[tuple[str, Refusal], int]:
        """How many events were refused, by platform and reason."""
        return dict(self._counts)

    def note(self, event: InboundEvent, why: Refusal) -> None:
        """Count a refusal, and log it unless its like has filled the minute."""
        platform, chat = event.place.platform, event.place.session_key
        self._counts[platform, why] += 1
        key = (chat, str(event.sender), why)
        now = self._clock.monotonic()
        minute = self._minutes.get(key)
        if minute is None or now - minute.began >= MINUTE_SECONDS:
            self._close(key)
            minute = self._minutes[key] = _Minute(began=now)
            self._forget()
        minute.count += 1
        if minute.count > LINES_A_MINUTE:
            return
        # Talk of others in a group is no news; whoever looks for it asks for debug.
        level = logging.DEBUG if why is Refusal.UNADDRESSED else logging.INFO
        logger.log(
            level,
            "refused a %s of %s in %s: %s, %d on %s so far",
            type(event).__name__,
            _log_name(event.sender),
            chat,
            why.value,
            self._counts[platform, why],
            platform,
        )

    def _close(self, key: tuple[str, str, Refusal]) -> None:
        minute = self._minutes.pop(key, None)
        unsaid = 0 if minute is None else minute.count - LINES_A_MINUTE
        if unsaid > 0:
            chat, sender, why = key
            logger.info("refused %d more of %s in %s: %s", unsaid, sender, chat, why.value)

    def _forget(self) -> None:
        while len(self._minutes) > MAX_REMEMBERED:
            self._close(next(iter(self._minutes)))


def _log_name(actor: Actor) -> str:
    return f"{actor} (bot)" if actor.is_bot else str(actor)
