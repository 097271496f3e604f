"""How often a bot may write, and how it is told to wait."""

import math
from dataclasses import dataclass, field
from typing import Final

from tests.fakes.telegram.state import ChatKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """`burst` calls at once, then `per_second`."""

    burst: float
    per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What Telegram's documentation names; it allows short bursts without saying how short."""

    overall: Budget | None = field(default_factory=lambda: Budget(burst=30, per_second=30))
    private: Budget | None = field(default_factory=lambda: Budget(burst=3, per_second=1))
    group: Budget | None = field(default_factory=lambda: Budget(burst=20, per_second=20 / 60))


UNLIMITED: Final = Rates(overall=None, private=None, group=None)


@dataclass(slots=True)
class _Left:
    tokens: float
    at: float


@dataclass(slots=True, kw_only=True)
class Meter:
    """Counts the calls of every bot and chat against their budgets."""

    rates: Rates
    _left: dict[tuple[int, int], _Left] = field(default_factory=dict[tuple[int, int], _Left])

    def spend(self, bot: int, chat: int, kind: ChatKind, *, calls: int, now: float) -> int:
        """Take the calls from the budgets; the seconds to wait when they are spent, else 0."""
        mine = self.rates.private if kind == "private" else self.rates.group
        budgets = [
            (key, b) for key, b in (((bot, 0), self.rates.overall), ((bot, chat), mine)) if b
        ]
        waits = [self._wait(key, budget, calls=calls, now=now) for key, budget in budgets]
        if any(waits):
            return max(waits)
        for key, _ in budgets:
            self._left[key].tokens -= calls
        return 0

    def _wait(self, key: tuple[int, int], budget: Budget, *, calls: int, now: float) -> int:
        left = self._left.setdefault(key, _Left(budget.burst, now))
        left.tokens = min(budget.burst, left.tokens + (now - left.at) * budget.per_second)
        left.at = now
        # An album may be larger than the burst: it passes when the budget is full.
        needed = min(calls, budget.burst) - left.tokens
        return max(1, math.ceil(needed / budget.per_second)) if needed > 1e-6 else 0
