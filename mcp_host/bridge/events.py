"""The tools that follow what happens, by a cursor that outlives this process and the gateway."""

import asyncio

from gateway.domain.events import EventPage
from gateway.domain.ids import Cursor
from mcp_host.bridge import arguments, rendering, shapes
from mcp_host.bridge.ports import BridgePorts


class Following:
    """`after_cursor` 0 is the moment of `begin`; any number may wait at once."""

    def __init__(self, ports: BridgePorts) -> None:
        self._events = ports.events
        self._begun: Cursor | None = None

    async def begin(self) -> Cursor:
        """Return the head as it was when this was first asked; never 0.

        Raises:
            StoreBusy: It cannot be read now; the next call asks again.
        """
        if self._begun is None:
            self._begun = await self._events.head()
        return self._begun

    async def events_poll(self, given: arguments.EventsPoll) -> shapes.EventList:
        """Return the next events, at once."""
        cursor = await self._start(given.after_cursor, replay=given.replay)
        page = await self._events.after(cursor, session_key=given.session_key, limit=given.limit)
        found = [rendering.event(event) for event in page.events]
        answer = shapes.EventList(events=found, next_cursor=page.next)
        if page.gap is not None:
            answer["gap"] = rendering.gap(page.gap)
        return answer

    async def events_wait(self, given: arguments.EventsWait) -> shapes.NextEvent:
        """Return the next event once there is one, or that there was none in time."""
        cursor = await self._start(given.after_cursor, replay=given.replay)
        try:
            async with asyncio.timeout(given.timeout_ms / 1000):
                page = await self._next(cursor, given.session_key)
        except TimeoutError:
            page = await self._events.after(cursor, session_key=given.session_key, limit=1)
        answer = shapes.NextEvent(
            event=rendering.event(page.events[0]) if page.events else None,
            next_cursor=page.next,
        )
        if not page.events and page.gap is None:
            answer["reason"] = "timeout"
        if page.gap is not None:
            answer["gap"] = rendering.gap(page.gap)
        return answer

    async def _next(self, cursor: Cursor, session_key: str | None) -> EventPage:
        while True:
            await self._events.wait(cursor, session_key=session_key)
            page = await self._events.after(cursor, session_key=session_key, limit=1)
            if page.events or page.gap is not None:
                return page
            # What woke us can not be told (its row is damaged): we go on behind it.
            cursor = page.next

    async def _start(self, after: int, *, replay: bool) -> Cursor:
        begun = await self.begin()
        return Cursor(after) if after or replay else begun
