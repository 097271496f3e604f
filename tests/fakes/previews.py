"""A board that shows replies while they are made, and what a chat then looks like."""

import asyncio
from collections.abc import Sequence

from gateway.domain.delivery import Delivery, DeliveryKind, Part
from gateway.domain.ids import Place
from gateway.domain.preview import Preview


class Board:
    """Implements `Streaming`; unless it `fades`, a message stands for each reply.

    `failures` are raised first, one a call; while `gate` is closed a call does not come back.
    """

    def __init__(self, *, fades: bool = True) -> None:
        self.shown: list[Preview] = []
        self.failures: list[Exception] = []
        self.waits: list[float] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._fades = fades
        self._news = asyncio.Event()

    def opening(self, preview: Preview) -> Part | None:
        return None if self._fades else Part(kind=DeliveryKind.TEXT, body=f"… {preview.text}")

    def preview_wait(self, place: Place) -> float:
        return self.waits.pop(0) if self.waits else 0.0

    async def show_preview(self, preview: Preview) -> None:
        assert (preview.message is None) is self._fades
        if self.failures:
            raise self.failures.pop(0)
        self.shown.append(preview)
        self._news.set()
        await self.gate.wait()

    @property
    def texts(self) -> list[str]:
        return [preview.text for preview in self.shown]

    async def until(self, text: str) -> None:
        """Return once that is what it shows."""
        async with asyncio.timeout(10):
            while self.texts[-1:] != [text]:
                self._news.clear()
                await self._news.wait()


def left_on_screen(sent: Sequence[Delivery]) -> list[str]:
    """Return the texts that were sent and not taken away; native ids count what was sent."""
    kept = {f"m{n}": item.body for n, item in enumerate(sent) if item.kind is DeliveryKind.TEXT}
    for item in sent:
        if item.kind is DeliveryKind.EDIT and not item.body:
            del kept[str(item.edits)]
    return list(kept.values())
