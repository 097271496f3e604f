"""The terminal of a running gateway: chats that attach by name, any number of listeners each.

What is sent counts as delivered at once: it is in the store, and whoever listens is shown it.
"""

import asyncio
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from adapters.terminal.ids import PLATFORM
from gateway.domain.delivery import Delivery, Receipt
from gateway.domain.errors import DeliveryUnsure
from gateway.ports import EventSink

MAX_BEHIND: Final = 1_000
"""Deliveries a listener may leave unread; then it is let go, and reads the store instead."""


class Listener:
    """One attached chat. `news` is set when `take` has something, or when it was let go."""

    def __init__(self, *, interactive: bool) -> None:
        self.interactive = interactive
        self.news = asyncio.Event()
        self.lost = False
        self._waiting: list[Delivery] = []

    def put(self, delivery: Delivery) -> None:
        """Add what the chat is to be shown."""
        if len(self._waiting) >= MAX_BEHIND:
            self.lost = True
        else:
            self._waiting.append(delivery)
        self.news.set()

    def take(self) -> list[Delivery]:
        """Return what waits, in order."""
        taken, self._waiting = self._waiting, []
        self.news.clear()
        return taken


class AttachedTerminals:
    """Implements `gateway.ports.Adapter` for the platform `terminal` without a screen of its own."""

    platform = PLATFORM
    account = ""

    def __init__(self) -> None:
        # Native ids are unique over all runs: a random run and a number in it.
        self._run = secrets.token_hex(8)
        self._shown = 0
        self._listeners: dict[str, list[Listener]] = {}

    @contextmanager
    def listen(self, chat: str, *, interactive: bool) -> Generator[Listener]:
        """Attach to a chat; `interactive` when somebody can answer its cards there."""
        listener = Listener(interactive=interactive)
        self._listeners.setdefault(chat, []).append(listener)
        try:
            yield listener
        finally:
            self._listeners[chat].remove(listener)
            if not self._listeners[chat]:
                del self._listeners[chat]

    def can_answer(self, chat: str) -> bool:
        """Say whether anyone who is attached can answer a card."""
        return any(listener.interactive for listener in self._listeners.get(chat, ()))

    async def run(self, sink: EventSink) -> None:
        """Stay until cancelled: what is typed comes through the control socket."""
        del sink
        await asyncio.Event().wait()

    async def send(self, delivery: Delivery) -> Receipt:
        """Show a delivery to whoever is attached."""
        for listener in self._listeners.get(delivery.place.chat, ()):
            listener.put(delivery)
        self._shown += 1
        return Receipt(native_id=f"{self._run}.{self._shown}")

    async def settle_unsure(self, delivery: Delivery) -> Receipt | None:
        """Never find out: who was attached to a dead process may have seen it.

        Raises:
            DeliveryUnsure: Always; it is shown again with a mark.
        """
        raise DeliveryUnsure(self.platform, f"delivery {delivery.id} was being shown")
