"""How often an app may call (facts §3): a tier for each method, and one post a second in a channel."""

import math
from dataclasses import dataclass, field
from typing import Final

from tests.fakes.telegram.rates import Budget

TIERS: Final = {1: 1, 2: 20, 3: 50, 4: 100}
"""Calls a minute; short bursts are let through."""
_TIER_OF: Final = {
    "apps.connections.open": 4,
    "chat.update": 3,
    "chat.delete": 3,
    "chat.postEphemeral": 4,
    "chat.startStream": 2,
    "chat.appendStream": 4,
    "chat.stopStream": 2,
    "conversations.history": 3,
    "conversations.replies": 3,
    "conversations.info": 3,
    "conversations.open": 3,
    "users.conversations": 3,
    "users.info": 4,
    "views.open": 4,
    "views.update": 4,
    "reactions.add": 3,
    "reactions.remove": 2,
    "files.getUploadURLExternal": 4,
    "files.completeUploadExternal": 4,
    "files.info": 4,
    "assistant.threads.setStatus": 3,
    "assistant.threads.setSuggestedPrompts": 3,
    "assistant.threads.setTitle": 3,
}
POST_BURST: Final = 3


@dataclass(slots=True)
class _Left:
    tokens: float
    at: float


@dataclass(slots=True, kw_only=True)
class Meter:
    """Counts calls of each workspace; `unlimited` counts none."""

    unlimited: bool = False
    _left: dict[tuple[str, str], _Left] = field(default_factory=dict[tuple[str, str], _Left])

    def spend(self, team: str, method: str, channel: str, *, now: float) -> int:
        """Take a call; the seconds to wait when there are too many, else 0."""
        if self.unlimited:
            return 0
        if method == "chat.postMessage":
            return self._take(
                (team, f"post:{channel}"), Budget(burst=POST_BURST, per_second=1), now
            )
        tier = _TIER_OF.get(method)
        if tier is None:
            return 0
        minute = TIERS[tier]
        return self._take((team, method), Budget(burst=minute, per_second=minute / 60), now)

    def _take(self, key: tuple[str, str], budget: Budget, now: float) -> int:
        left = self._left.setdefault(key, _Left(budget.burst, now))
        left.tokens = min(budget.burst, left.tokens + (now - left.at) * budget.per_second)
        left.at = now
        if left.tokens >= 1:
            left.tokens -= 1
            return 0
        return max(1, math.ceil((1 - left.tokens) / budget.per_second))
