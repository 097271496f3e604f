"""Stores each inbound event once, then wakes whoever works on it. Knows no platform."""

import logging
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol, assert_never

from gateway.domain.errors import StoreBusy
from gateway.domain.files import safe_name
from gateway.domain.ids import InboundId
from gateway.domain.message import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    InboundEvent,
    InboundMessage,
    MessageDeleted,
    MessageEdited,
)
from gateway.domain.operations.inbound import Accept, Duplicate, Lane
from gateway.ports import InboundStore
from gateway.runtime.access import Access
from gateway.runtime.backlog import Backlog
from gateway.runtime.commands import QUEUE, Command, find_command, session_number
from gateway.runtime.entrance import Taken
from gateway.runtime.wakeups import Wakeups
from gateway.telemetry.faults import FaultPoint, reach

logger = logging.getLogger(__name__)

ALBUM_SECONDS: Final = 1.0
"""Between the first file of an album and its turn: it is one message, and gets one answer."""


class Arrivals(Protocol):
    """Who has to know of an input that may have come during a turn of its conversation."""

    async def arrived(self, event: InboundEvent, *, inbound: InboundId) -> None:
        """Hear of an input that is stored; it is answered whatever comes of this."""
        ...


class Judge(Protocol):
    """Who says what is taken."""

    async def judge(self, event: InboundEvent) -> Taken | None:
        """Return how an event is taken, None when it is refused."""
        ...

    async def tell(self, event: InboundEvent, words: str) -> None:
        """Tell its conversation of a limit."""
        ...


class Meaning(Protocol):
    """Who knows what is waited for in a chat."""

    def meant(self, event: InboundEvent) -> InboundEvent:
        """Return an event as it is stored."""
        ...


class Intake:
    """Implements `EventSink` for every adapter."""

    def __init__(
        self,
        store: InboundStore,
        access: Access,
        entrance: Judge,
        wakeups: Wakeups,
        arrivals: Arrivals,
        backlog: Backlog,
        logins: Meaning,
    ) -> None:
        self._store = store
        self._access = access
        self._entrance = entrance
        self._wakeups = wakeups
        self._arrivals = arrivals
        self._backlog = backlog
        self._logins = logins
        self._closed = False

    def backlog(self, *, platform: str, account: str, waits: bool) -> None:
        """Hear whether more of what an account missed is about to come."""
        if waits:
            self._backlog.waits((platform, account))
        else:
            self._backlog.arrived((platform, account))

    def close(self) -> None:
        """Take nothing more: platforms are not acknowledged and deliver it again later."""
        self._closed = True

    async def emit(self, event: InboundEvent, *, position: tuple[str, str] | None = None) -> None:
        """Store an event unless it is refused; what is known already wakes nobody.

        Raises:
            StoreBusy: Nothing is stored; the platform must not be acknowledged.
        """
        if self._closed:
            raise StoreBusy("shutting down")
        taken = await self._entrance.judge(event)
        if taken is None:
            return
        event = _with_safe_names(self._logins.meant(_meant(self._access, event)))
        lane = lane_of(event)
        await reach(FaultPoint.INTAKE_RECEIVED)
        moves = _moves_session(self._access, event)
        accepted = await self._store.accept(
            Accept(
                event=event,
                lane=lane,
                new_session=moves is not None and moves.new_session,
                resume=_number_in(event) if moves is not None and moves.resumes else None,
                position=position,
                not_before=taken.not_before or self._until_all_came(event),
            )
        )
        await reach(FaultPoint.INTAKE_COMMITTED)
        if isinstance(accepted, Duplicate):
            logger.debug("known already: %s", accepted.dedupe)
            return
        if taken.word:
            await self._entrance.tell(event, taken.word)
        if isinstance(event, InboundMessage) and event.attachments:
            self._wakeups.files()
        match lane:
            case Lane.TURN:
                self._wakeups.turns()
                await self._arrivals.arrived(event, inbound=accepted.inbound)
            case Lane.CONTROL:
                self._wakeups.controls()
            case _:
                assert_never(lane)

    def _until_all_came(self, event: InboundEvent) -> datetime | None:
        """Return when the files of an album are all here, which come one a message."""
        if not isinstance(event, InboundMessage) or not event.album:
            return None
        return self._backlog.hold(event.place, ALBUM_SECONDS)


def lane_of(event: InboundEvent) -> Lane:
    """Say whether an event waits behind the running turn or is worked off beside it."""
    match event:
        case InboundMessage():
            return Lane.TURN
        case MessageEdited() | MessageDeleted() | ButtonPressed() | FormSubmitted():
            return Lane.CONTROL
        case CommandGiven():
            command = find_command(event.name)
            return command.lane if command else Lane.CONTROL
        case _:
            assert_never(event)


def _with_safe_names(event: InboundEvent) -> InboundEvent:
    if not isinstance(event, InboundMessage) or not event.attachments:
        return event
    files = tuple(replace(file, name=safe_name(file.name)) for file in event.attachments)
    return replace(event, attachments=files)


def _meant(access: Access, event: InboundEvent) -> InboundEvent:
    """Return an event as it is stored: `/queue TEXT` is the message TEXT, standing alone."""
    if not isinstance(event, CommandGiven) or not event.argument.strip():
        return event
    command = find_command(event.name)
    if command is None or command.name != QUEUE:
        return event
    if not access.may_command(event.sender, command.name, place=event.place):
        return event
    return InboundMessage(
        place=event.place,
        native_id=event.native_id,
        dedupe=event.dedupe,
        sender=event.sender,
        sent_at=event.sent_at,
        text=event.argument.strip(),
        mentions_us=True,
        alone=True,
        toolsets=event.toolsets,
    )


def _moves_session(access: Access, event: InboundEvent) -> Command | None:
    """Return the command by which its sender opens a session or goes back to one, if it is one."""
    if not isinstance(event, CommandGiven):
        return None
    command = find_command(event.name)
    if command is None or not (command.new_session or command.resumes):
        return None
    may = access.may_command(event.sender, command.name, place=event.place)
    return command if may else None


def _number_in(event: InboundEvent) -> int | None:
    return session_number(event.argument) if isinstance(event, CommandGiven) else None
