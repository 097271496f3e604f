"""The terminal as an `Adapter`: reads lines, shows deliveries, keeps track of the open card."""

import asyncio
import secrets
from collections.abc import Sequence
from typing import Protocol

from adapters.terminal.buttons import NotUnderstood, OpenCard, open_card
from adapters.terminal.ids import PLATFORM
from adapters.terminal.inbound import Line, command, event_of
from adapters.terminal.outbound import shown_text
from adapters.terminal.screen import Screen
from gateway.domain.conversation import Activity
from gateway.domain.delivery import Delivery, DeliveryKind, Receipt
from gateway.domain.errors import DeliveryUnsure
from gateway.ports import Clock, EventSink


class Progress(Protocol):
    """What the terminal has to know of the conversation it feeds."""

    async def activity(self) -> Activity:
        """Say whether it works, waits for an answer, or is done."""
        ...

    async def changed(self) -> None:
        """Return after the store has changed since the last call."""
        ...

    async def open_cards(self) -> Sequence[Delivery]:
        """Cards shown in an earlier run that still wait for an answer, oldest first."""
        ...


class TerminalAdapter:
    """Implements `gateway.ports.Adapter`; `run` ends at the end of input.

    At the end of input nobody can answer any more: what still waits is stopped. `toolsets` are
    the only ones that what is typed may use, none named is all.
    """

    platform = PLATFORM
    account = ""

    def __init__(
        self,
        screen: Screen,
        progress: Progress,
        clock: Clock,
        *,
        toolsets: tuple[str, ...] = (),
    ) -> None:
        self._screen = screen
        self._toolsets = toolsets
        self._progress = progress
        self._clock = clock
        # Native ids are unique over all runs: a random run and a number in it.
        self._run = secrets.token_hex(8)
        self._received = 0
        self._shown = 0
        self._cards: dict[str, OpenCard] = {}
        self._lost: asyncio.Future[OSError] = asyncio.get_running_loop().create_future()

    @property
    def lost(self) -> OSError | None:
        """Why nothing can be shown any more, None while it can (nobody reads, the disk is full)."""
        return self._lost.result() if self._lost.done() else None

    async def run(self, sink: EventSink) -> None:
        """Feed lines to `sink` until the input ends and its last answer is shown, or none can be."""
        feeding = asyncio.create_task(self._feed(sink), name="terminal:feed")
        try:
            await asyncio.wait({feeding, self._lost}, return_when=asyncio.FIRST_COMPLETED)
            if feeding.done():
                await feeding
        finally:
            feeding.cancel()
            await asyncio.wait({feeding})

    async def _feed(self, sink: EventSink) -> None:
        for delivery in await self._progress.open_cards():
            self._show(delivery)
        while True:
            if self._screen.sequential:
                await self._until_due()
            text = await self._screen.read(self._current)
            if text is None:
                break
            await self._take(self._line(text), sink)
        if await self._until_due() is Activity.ASKING:
            await sink.emit(command(self._line("/stop")))
            await self._until_settled()

    async def send(self, delivery: Delivery) -> Receipt:
        """Show a delivery.

        Raises:
            DeliveryUnsure: It could not be written, whole or at all: `run` ends.
        """
        try:
            self._show(delivery)
        except OSError as error:
            if not self._lost.done():
                self._lost.set_result(error)
            raise DeliveryUnsure(self.platform, error.strerror or "not written") from error
        self._shown += 1
        return Receipt(native_id=f"{self._run}.{self._shown}")

    async def settle_unsure(self, delivery: Delivery) -> Receipt | None:
        """Never find out: whether the screen of a dead process showed it cannot be seen.

        Raises:
            DeliveryUnsure: Always; it is shown again with a mark.
        """
        raise DeliveryUnsure(self.platform, f"delivery {delivery.id} was being shown")

    def _current(self) -> OpenCard | None:
        return next(reversed(self._cards.values()), None)

    def _line(self, text: str) -> Line:
        self._received += 1
        return Line(
            text=text,
            native_id=f"{self._run}:{self._received}",
            at=self._clock.now(),
            toolsets=self._toolsets,
        )

    async def _take(self, line: Line, sink: EventSink) -> None:
        event = event_of(line, self._current())
        if isinstance(event, NotUnderstood):
            self._screen.write(event.hint)
        elif event is not None:
            await sink.emit(event)

    def _show(self, delivery: Delivery) -> None:
        card = open_card(delivery.payload)
        if delivery.kind is DeliveryKind.CARD and card is not None:
            # Moved to the end: the newest prompt of a question is the one that is answered.
            self._cards.pop(card.question, None)
            self._cards[card.question] = card
        if delivery.kind is DeliveryKind.EDIT and card is not None:
            self._cards.pop(card.question, None)
        self._screen.write(shown_text(delivery))

    async def _until_due(self) -> Activity:
        while (activity := await self._progress.activity()) is Activity.BUSY:
            await self._progress.changed()
        return activity

    async def _until_settled(self) -> None:
        while await self._progress.activity() is not Activity.SETTLED:
            await self._progress.changed()
