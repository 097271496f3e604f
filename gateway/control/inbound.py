"""`/v1/inbound`: what is typed in an attached chat, and everything that chat is shown.

POST gives a line and follows the conversation until nothing is left to do; GET only follows. The
work goes on when the caller leaves.
"""

import logging
import re
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing
from typing import Any, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from adapters.terminal.attached import Listener
from adapters.terminal.buttons import NotUnderstood
from adapters.terminal.ids import PLATFORM, attached_place
from adapters.terminal.inbound import Line, event_of
from gateway.control.body import read_body
from gateway.control.callers import caller
from gateway.control.desk import Desk
from gateway.control.lines import Shown
from gateway.control.problems import Problem
from gateway.control.streams import PING_SECONDS, Lines, first_of
from gateway.domain.conversation import Activity
from gateway.domain.errors import StoreBusy
from gateway.domain.ids import Place, TurnId
from gateway.domain.operations.turns import TurnEnd

logger = logging.getLogger(__name__)

CLIENT: Final = re.compile(rf"{PLATFORM}:([A-Za-z0-9._-]{{1,64}})")
LastTurn: TypeAlias = tuple[TurnId, TurnEnd | None]
NOBODY: Final = "nobody can be asked here"


class InboundRoutes:
    """Chats that attach to the running gateway."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def give(self, request: Request) -> Response:
        """Take a line, and follow the chat until its conversation is settled."""
        desk, body = self._desk, await read_body(request)
        if desk.leaving():
            raise Problem("stopping", "the gateway is stopping; nothing was taken")
        body.refuse("attachments")
        place = _place(body.text("client"))
        line = Line(
            text=body.text("text"),
            native_id=f"{place.chat}:{body.text('event_id')}",
            at=desk.clock.now(),
            place=place,
            sender=caller(desk),
            toolsets=body.texts("toolsets"),
        )
        event = event_of(line, None)
        desk.decisions.remember(line.sender)
        held = ExitStack()
        listener = held.enter_context(
            desk.terminals.listen(place.chat, interactive=body.flag("interactive"))
        )
        try:
            before = await desk.readers.inbox.last_turn(place)
            if event is not None and not isinstance(event, NotUnderstood):
                await desk.intake.emit(event)
        except BaseException:
            held.close()
            raise
        follower = Follower(desk, place, listener, last=before)
        return Lines(follower.until_settled(given=desk.given.add(place)), held=held)

    async def follow(self, request: Request) -> Response:
        """Follow a chat: its open cards first, then whatever it is shown."""
        desk = self._desk
        place = _place(request.query_params.get("client", ""))
        interactive = request.query_params.get("interactive", "true") != "false"
        held = ExitStack()
        listener = held.enter_context(desk.terminals.listen(place.chat, interactive=interactive))
        return Lines(Follower(desk, place, listener).forever(), held=held)


class Follower:
    """One stream of one attached chat; `last` is the newest turn that was told of."""

    def __init__(
        self, desk: Desk, place: Place, listener: Listener, *, last: LastTurn | None = None
    ) -> None:
        self._desk = desk
        self._place = place
        self._listener = listener
        self._last = last
        self._shown = Shown(
            desk.readers.questions, desk.decisions, desk.answers, redact=desk.redact
        )

    async def until_settled(self, *, given: int) -> AsyncGenerator[dict[str, Any]]:
        """Return the lines that follow one that was given, up to its `end`."""
        waiting = await self._desk.readers.inbox.waiting(self._place)
        yield {
            "type": "accepted",
            "conversation": self._place.session_key,
            "queued": waiting,
            "given": given,
        }
        async with aclosing(self._lines()) as lines:
            async for line in lines:
                yield line
                if line["type"] == "end":
                    return

    async def forever(self) -> AsyncGenerator[dict[str, Any]]:
        """Return every line: the cards that are open, that it is attached, and all that follows."""
        self._last = await self._desk.readers.inbox.last_turn(self._place)
        for delivery in await self._desk.readers.deliveries.cards(self._place):
            for line in await self._shown.lines(delivery):
                yield line
        yield {"type": "attached", "conversation": self._place.session_key}
        async with aclosing(self._lines()) as lines:
            async for line in lines:
                yield line

    async def _lines(self) -> AsyncGenerator[dict[str, Any]]:
        """Tell what is shown, and each time when nothing more will come by itself."""
        desk, listener = self._desk, self._listener
        told, fresh = -1, True
        while not desk.ending.is_set():
            rung = desk.commits.listen()
            given = desk.given.count(self._place)
            fresh = fresh or given != told
            # Read before what was shown is taken: a sent delivery is taken for certain.
            activity = await self._activity() if fresh else Activity.BUSY
            for delivery in listener.take():
                fresh = True
                for line in await self._shown.lines(delivery):
                    yield line
            if listener.lost:
                yield {"type": "failed", "error": "too much was left unread", "code": "too_slow"}
                return
            if activity is not Activity.BUSY:
                # What was taken back above is still to be shown.
                fresh, told = activity is Activity.ASKING and not self._answerable, given
                for line in await self._pause(activity, given):
                    yield line
                if listener.news.is_set():
                    continue
            if not await first_of(
                rung.wait(), listener.news.wait(), desk.ending.wait(), seconds=PING_SECONDS
            ):
                yield {"type": "ping"}

    @property
    def _answerable(self) -> bool:
        return self._desk.terminals.can_answer(self._place.chat)

    async def _activity(self) -> Activity:
        try:
            return await self._desk.readers.inbox.activity(self._place)
        except StoreBusy as error:
            logger.warning("an attached chat waits: %s", error)
            return Activity.BUSY

    async def _pause(self, activity: Activity, given: int) -> list[dict[str, Any]]:
        """Return the line that says why nothing more comes by itself."""
        if activity is Activity.ASKING:
            if self._answerable:
                return [{"type": "asking", "given": given}]
            # A program that asked one thing would wait for a person who is not there.
            pending = await self._desk.readers.questions.pending(shown_in=self._place)
            await self._desk.decisions.withdraw(pending, reason=NOBODY)
            return []
        lines: list[dict[str, Any]] = []
        newest = await self._desk.readers.inbox.last_turn(self._place)
        if newest != self._last and newest is not None and newest[1] is TurnEnd.FAILED:
            lines.append({"type": "failed", "error": "the turn failed", "code": "turn_failed"})
        self._last = newest
        return [*lines, {"type": "end", "given": given}]


def _place(client: str) -> Place:
    found = CLIENT.fullmatch(client)
    if found is None:
        raise Problem("invalid_arguments", f"client must be {PLATFORM}:<name>")
    return attached_place(found[1])
