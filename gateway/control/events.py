"""`GET /v1/events`: tells how far the event stream is, and nothing of what is in it."""

import logging
from collections.abc import AsyncIterator, Mapping

from starlette.requests import Request
from starlette.responses import Response

from gateway.control.desk import Desk
from gateway.control.problems import Problem
from gateway.control.streams import PING_SECONDS, Lines, first_of
from gateway.domain.errors import StoreBusy

logger = logging.getLogger(__name__)


class EventRoutes:
    """Pushes cursors; whoever reads slowly gets fewer of them, and misses no event."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def follow(self, request: Request) -> Response:
        """Answer with the head at once, then after each commit that wrote an event."""
        after = request.query_params.get("after", "0")
        if not (after.isascii() and after.isdecimal()):
            raise Problem("invalid_arguments", "after must be a cursor")
        return Lines(self._cursors())

    async def _cursors(self) -> AsyncIterator[Mapping[str, int]]:
        events, ending = self._desk.readers.events, self._desk.ending
        head = await events.head()
        yield {"cursor": head}
        while not ending.is_set():
            try:
                await first_of(events.wait(head), ending.wait(), seconds=PING_SECONDS)
                head = await events.head()
            except StoreBusy as error:
                logger.warning("the event stream waits: %s", error)
                await first_of(ending.wait(), seconds=PING_SECONDS)
            yield {"cursor": head}
