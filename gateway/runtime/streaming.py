"""Shows a reply while its model writes it. What is shown is never the reply, which comes by the outbox.

The model's text is gathered as it comes, and what is newest is shown at the adapter's pace: a token
costs no call, and the turn waits for nobody who looks on.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from gateway.domain.delivery import Origin
from gateway.domain.errors import AdapterError, DeliveryDeferred, DeliveryUnsure, StoreBusy
from gateway.domain.ids import Account, Place
from gateway.domain.operations.deliveries import Enqueue, ParkChat
from gateway.domain.operations.turns import Claim
from gateway.domain.preview import Preview, preview_key
from gateway.ports import Clock, Deliveries, DeliveryStore, Streaming
from gateway.runtime.wakeups import Bell, Wakeups

logger = logging.getLogger(__name__)

FIRST_SECONDS: Final = 0.7
"""An answer that is there sooner needs nothing before it."""
REFRESH_SECONDS: Final = 20.0
"""What fades by itself is shown again after that, also when nothing is new."""
OPENING_SECONDS: Final = 1.0
"""Between two looks whether the message that stands for a reply has been sent."""
UNSURE_SECONDS: Final = 5.0
"""After a call without an answer."""
LAST_SECONDS: Final = 1.0
"""How long the end waits for a call that is under way, so that it cannot come after the reply."""


class Growing:
    """The text of one turn's reply, as far as its model has written it."""

    def __init__(self) -> None:
        self._before = ""
        self._pieces: list[str] = []
        self.news = Bell()

    @property
    def text(self) -> str:
        """All of it: what was said before tools were called, and what is being written."""
        return "\n\n".join(text for text in (self._before, "".join(self._pieces).strip()) if text)

    def begin(self, before: Iterable[str]) -> None:
        """Begin the next request; `before` is what the model said in those of this turn."""
        self._before = "\n\n".join(text.strip() for text in before if text.strip())
        self.restart()

    def restart(self) -> None:
        """Forget what came of a request that failed: it is made again."""
        self._pieces.clear()

    def add(self, piece: str) -> None:
        """Append what the model wrote just now."""
        self._pieces.append(piece)
        self.news.ring()


class _Over(Exception):
    """Nothing more of this reply can be shown."""


@dataclass(slots=True, kw_only=True)
class _Showing:
    """How much of one reply is shown; `fades`: no message stands for it."""

    adapter: Streaming
    claim: Claim
    growing: Growing
    under_way: asyncio.Lock = field(default_factory=asyncio.Lock)
    shown: str = ""
    shown_at: float = 0.0
    fades: bool = False
    message: str | None = None

    @property
    def place(self) -> Place:
        return self.claim.place

    @property
    def newest(self) -> Preview:
        return Preview(
            place=self.place,
            turn=self.claim.turn,
            text=self.growing.text,
            message=self.message,
        )


class Streams:
    """The replies that grow, on every account that can show it."""

    def __init__(
        self,
        adapters: Mapping[Account, Streaming],
        *,
        store: DeliveryStore,
        deliveries: Deliveries,
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._adapters = adapters
        self._store = store
        self._deliveries = deliveries
        self._wakeups = wakeups
        self._clock = clock

    def growing(self, place: Place) -> Growing | None:
        """Return where a reply's text is gathered, None where it would not be shown."""
        return Growing() if (place.platform, place.account) in self._adapters else None

    @asynccontextmanager
    async def shown(
        self, claim: Claim, growing: Growing | None, *, paused: Callable[[], bool]
    ) -> AsyncGenerator[None]:
        """Show what grows until the block ends; while it is `paused` only what is new."""
        if growing is None:
            yield
            return
        adapter = self._adapters[(claim.place.platform, claim.place.account)]
        showing = _Showing(adapter=adapter, claim=claim, growing=growing)
        task = asyncio.create_task(self._keep_showing(showing, paused), name="preview")
        try:
            yield
        finally:
            await _end(task, showing.under_way)

    async def _keep_showing(self, showing: _Showing, paused: Callable[[], bool]) -> None:
        try:
            await showing.growing.news.wait()
            await self._clock.sleep(FIRST_SECONDS)
            while True:
                if not self._is_due(showing, paused):
                    refresh = REFRESH_SECONDS if showing.fades else None
                    await showing.growing.news.wait_within(refresh, clock=self._clock)
                    continue
                while wait := showing.adapter.preview_wait(showing.place):
                    await self._clock.sleep(wait)
                if pause := await self._show_newest(showing):
                    await self._clock.sleep(pause)
        except _Over:
            logger.debug("nothing more of the reply is shown before it is there")
        except Exception:
            # The reply itself comes all the same.
            logger.exception("the growing reply is shown no more")

    def _is_due(self, showing: _Showing, paused: Callable[[], bool]) -> bool:
        if showing.growing.text != showing.shown:
            return True
        age = self._clock.monotonic() - showing.shown_at
        return showing.fades and age >= REFRESH_SECONDS and not paused()

    async def _show_newest(self, showing: _Showing) -> float:
        """Show what there is by now, if it can be; return a pause to make then."""
        async with showing.under_way:
            try:
                return await self._shown_newest(showing)
            except DeliveryDeferred as error:
                await self._park(showing.place, error.retry_after)
                return error.retry_after
            except DeliveryUnsure as error:
                logger.debug("a preview may not be shown: %s", error)
                return UNSURE_SECONDS
            except (AdapterError, StoreBusy) as error:
                logger.info("the reply is not shown before it is there: %s", error)
                raise _Over from error

    async def _shown_newest(self, showing: _Showing) -> float:
        newest = showing.newest
        if not newest.text:
            # What was shown is being written anew.
            showing.shown = newest.text
            return 0.0
        if newest.message is None and not showing.fades:
            return await self._find_message(showing, newest)
        await showing.adapter.show_preview(newest)
        showing.shown, showing.shown_at = newest.text, self._clock.monotonic()
        return 0.0

    async def _find_message(self, showing: _Showing, newest: Preview) -> float:
        """Look for the message that stands for the reply, and put it into the outbox if it is not."""
        opening = showing.adapter.opening(newest)
        if opening is None:
            showing.fades = True
            return 0.0
        key = preview_key(newest.turn)
        rows = await self._deliveries.group(key)
        if not rows:
            parts = (opening,)
            await self._store.enqueue(
                Enqueue(place=newest.place, group_key=key, parts=parts, origin=Origin.NOTICE)
            )
            self._wakeups.deliveries()
            showing.shown = newest.text
            return OPENING_SECONDS
        if rows[0].state == "dead":
            raise _Over
        if rows[0].state != "sent":
            return OPENING_SECONDS
        showing.message = rows[0].native_id
        return 0.0

    async def _park(self, place: Place, seconds: float) -> None:
        until = self._clock.now() + timedelta(seconds=seconds)
        try:
            await self._store.park_chat(ParkChat(place=place, until=until))
        except StoreBusy as error:
            # The next send is refused as well, and parks it.
            logger.info("the pause of a chat is not written down: %s", error)


async def _end(task: asyncio.Task[None], under_way: asyncio.Lock) -> None:
    """End the showing between two calls; one that takes too long is given up."""
    try:
        async with asyncio.timeout(LAST_SECONDS), under_way:
            pass
    except TimeoutError:
        logger.debug("a preview is still under way")
    finally:
        task.cancel()
    await asyncio.wait({task})
