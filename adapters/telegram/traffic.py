"""How much was said in a chat lately: what is cosmetic gives way, and nothing runs into a ban.

The outbox paces sends (`SEND_COST_MS`, `BURST_MS`); this counts every call, typing included.
"""

import math
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from telegram import error as sdk

from adapters.telegram.errors import retry_seconds
from adapters.telegram.ids import is_private
from gateway.domain.delivery import DeliveryKind

SEND_COST_MS: Final = dict.fromkeys(DeliveryKind, 1_000)
"""Telegram takes about one message a second in a chat …"""
BURST_MS: Final = 2_000
"""… and a few at once."""

WINDOW_SECONDS: Final = 60.0
PRIVATE_CALLS: Final = 60
GROUP_CALLS: Final = 20
"""Calls in one chat within the window."""
COSMETIC_SHARE: Final = 0.5
"""Beyond this part of them nothing cosmetic is said."""
TYPING_SECONDS: Final = 4.5
"""Telegram shows a chat action for five."""
PREVIEW_SECONDS: Final = 2.0
GROUP_PREVIEW_SECONDS: Final = 4.0
"""Between two previews of replies in one chat."""


@dataclass(slots=True)
class _Chat:
    calls: deque[float] = field(default_factory=deque[float])
    typing_at: float = -math.inf
    preview_at: float = -math.inf
    parked_until: float = -math.inf


class Traffic:
    """Counts calls by chat on a clock that never jumps."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._now = monotonic
        self._chats: dict[str, _Chat] = {}

    def note(self, chat: str) -> None:
        """Count a call that is about to be made."""
        self._of(chat).calls.append(self._now())

    @contextmanager
    def calling(self, chat: str) -> Generator[None]:
        """Count a call, and remember when it is answered that the chat must be left alone."""
        self.note(chat)
        try:
            yield
        except sdk.RetryAfter as error:
            self.park(chat, retry_seconds(error))
            raise

    def park(self, chat: str, seconds: float) -> None:
        """Remember that the service wants to hear nothing of a chat for so long."""
        found = self._of(chat)
        found.parked_until = max(found.parked_until, self._now() + seconds)

    def wait(self, chat: str) -> float:
        """Return how long a send must wait for room in the window, 0 when there is some."""
        calls = self._recent(chat)
        limit = _limit(chat)
        if len(calls) < limit:
            return 0.0
        return max(calls[len(calls) - limit] + WINDOW_SECONDS - self._now(), 0.001)

    def may_type(self, chat: str) -> bool:
        """Whether a chat action is due and harmless; counts it as shown then."""
        found, now = self._of(chat), self._now()
        if now - found.typing_at < TYPING_SECONDS or not self.has_room(chat):
            return False
        found.typing_at = now
        return True

    def has_room(self, chat: str) -> bool:
        """Whether something cosmetic leaves enough for what must be sent."""
        return self._room_wait(chat) <= 0

    def preview_wait(self, chat: str) -> float:
        """Return how long a preview waits for its turn and for room, 0 when it may be shown."""
        pace = PREVIEW_SECONDS if is_private(chat) else GROUP_PREVIEW_SECONDS
        turn = self._of(chat).preview_at + pace - self._now()
        wait = max(turn, self._room_wait(chat))
        return max(wait, 0.001) if wait > 0 else 0.0

    def note_preview(self, chat: str) -> None:
        """Remember that a preview is shown now: it says as much as typing does."""
        found = self._of(chat)
        found.preview_at = found.typing_at = self._now()

    def _room_wait(self, chat: str) -> float:
        """Return the seconds until something cosmetic may be said in a chat; not above 0 when it may."""
        now, calls = self._now(), self._recent(chat)
        wait = self._of(chat).parked_until - now
        most = int(_limit(chat) * COSMETIC_SHARE)
        if len(calls) >= most:
            wait = max(wait, calls[len(calls) - most] + WINDOW_SECONDS - now)
        return wait

    def _recent(self, chat: str) -> deque[float]:
        calls, oldest = self._of(chat).calls, self._now() - WINDOW_SECONDS
        while calls and calls[0] <= oldest:
            calls.popleft()
        return calls

    def _of(self, chat: str) -> _Chat:
        return self._chats.setdefault(chat, _Chat())


def _limit(chat: str) -> int:
    return PRIVATE_CALLS if is_private(chat) else GROUP_CALLS
