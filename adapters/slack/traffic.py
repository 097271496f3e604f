"""How much was said in a chat lately: what is cosmetic gives way, and nobody is hurried who asked to wait.

The outbox paces sends (`SEND_COST_MS`, `BURST_MS`); this counts every call that shows something.
"""

import math
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from gateway.domain.delivery import DeliveryKind
from gateway.domain.errors import DeliveryDeferred

SEND_COST_MS: Final = dict.fromkeys(DeliveryKind, 1_000)
"""Slack takes one message a second in a channel …"""
BURST_MS: Final = 3_000
"""… and a few at once."""

WINDOW_SECONDS: Final = 60.0
COSMETIC_CALLS: Final = 30
"""Beyond so many calls in a chat within the window nothing cosmetic is said."""
STATUS_SECONDS: Final = 20.0
"""Slack shows a status for two minutes, or until the answer is there."""
PREVIEW_SECONDS: Final = 1.5
"""Between two pieces of a reply that grows."""


@dataclass(slots=True)
class _Chat:
    calls: deque[float] = field(default_factory=deque[float])
    status_at: dict[str, float] = field(default_factory=dict[str, float])
    preview_at: float = -math.inf
    parked_until: float = -math.inf


class Traffic:
    """Counts calls by chat on a clock that never jumps."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._now = monotonic
        self._chats: dict[str, _Chat] = {}

    @contextmanager
    def calling(self, chat: str) -> Generator[None]:
        """Count a call, and remember when it is answered that the chat must be left alone."""
        self._of(chat).calls.append(self._now())
        try:
            yield
        except DeliveryDeferred as error:
            self.park(chat, error.retry_after)
            raise

    def park(self, chat: str, seconds: float) -> None:
        """Remember that the service wants to hear nothing of a chat for so long."""
        found = self._of(chat)
        found.parked_until = max(found.parked_until, self._now() + seconds)

    def has_room(self, chat: str) -> bool:
        """Whether something cosmetic leaves enough for what must be sent."""
        return self._room_wait(chat) <= 0

    def may_show_status(self, chat: str, thread: str) -> bool:
        """Whether a status is due and harmless; counts it as shown then."""
        found, now = self._of(chat), self._now()
        last = found.status_at.get(thread, -math.inf)
        if now - last < STATUS_SECONDS or not self.has_room(chat):
            return False
        found.status_at = {thread: now}
        return True

    def preview_wait(self, chat: str) -> float:
        """Return how long a preview waits for its turn and for room, 0 when it may be shown."""
        turn = self._of(chat).preview_at + PREVIEW_SECONDS - self._now()
        wait = max(turn, self._room_wait(chat))
        return max(wait, 0.001) if wait > 0 else 0.0

    def note_preview(self, chat: str) -> None:
        """Remember that a preview is shown now."""
        self._of(chat).preview_at = self._now()

    def _room_wait(self, chat: str) -> float:
        """Return the seconds until something cosmetic may be said; not above 0 when it may."""
        now, found = self._now(), self._of(chat)
        while found.calls and found.calls[0] <= now - WINDOW_SECONDS:
            found.calls.popleft()
        wait = found.parked_until - now
        if len(found.calls) >= COSMETIC_CALLS:
            oldest = found.calls[len(found.calls) - COSMETIC_CALLS]
            wait = max(wait, oldest + WINDOW_SECONDS - now)
        return wait

    def _of(self, chat: str) -> _Chat:
        return self._chats.setdefault(chat, _Chat())
