"""Stores each inbound event once, then wakes whoever works on it. Knows no platform."""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Protocol, assert_never

from gateway.domain.errors import StoreBusy
from gateway.domain.ids import Actor, InboundId
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
from gateway.runtime.commands import QUEUE, find_command
from gateway.runtime.wakeups import Wakeups
from gateway.telemetry.faults import FaultPoint, reach

logger = logging.getLogger(__name__)


class Arrivals(Protocol):
    """Who has to know of an input that may have come during a turn of its conversation."""

    async def arrived(self, event: InboundEvent, *, inbound: InboundId) -> None:
        """Hear of an input that is stored; it is answered whatever comes of this."""
        ...


class Intake:
    """Implements `EventSink` for every adapter."""

    def __init__(
        self,
        store: InboundStore,
        access: Access,
        wakeups: Wakeups,
        arrivals: Arrivals,
        backlog: Backlog,
    ) -> None:
        self._store = store
        self._access = access
        self._wakeups = wakeups
        self._arrivals = arrivals
        self._backlog = backlog
        self._refused: Counter[str] = Counter()
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

    @property
    def refused(self) -> Mapping[str, int]:
        """How many events of people who may not talk were dropped, by platform."""
        return dict(self._refused)

    async def emit(self, event: InboundEvent, *, position: tuple[str, str] | None = None) -> None:
        """Store an event unless its sender may not talk; what is known already wakes nobody.

        Raises:
            StoreBusy: Nothing is stored; the platform must not be acknowledged.
        """
        if self._closed:
            raise StoreBusy("shutting down")
        if not _may_enter(self._access, event):
            self._refuse(event)
            return
        event = _meant(self._access, event)
        lane = lane_of(event)
        await reach(FaultPoint.INTAKE_RECEIVED)
        accepted = await self._store.accept(
            Accept(
                event=event,
                lane=lane,
                new_session=_opens_session(self._access, event),
                position=position,
            )
        )
        await reach(FaultPoint.INTAKE_COMMITTED)
        if isinstance(accepted, Duplicate):
            logger.debug("known already: %s", accepted.dedupe)
            return
        match lane:
            case Lane.TURN:
                self._wakeups.turns()
                await self._arrivals.arrived(event, inbound=accepted.inbound)
            case Lane.CONTROL:
                self._wakeups.controls()
            case _:
                assert_never(lane)

    def _refuse(self, event: InboundEvent) -> None:
        platform = event.place.platform
        self._refused[platform] += 1
        logger.info(
            "refused a %s of %s in %s, %d on %s so far",
            type(event).__name__,
            _log_name(event.sender),
            event.place.session_key,
            self._refused[platform],
            platform,
        )


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


def _may_enter(access: Access, event: InboundEvent) -> bool:
    # A press is judged by its question, so that a bystander gets a visible refusal and is audited.
    if isinstance(event, ButtonPressed | FormSubmitted):
        return True
    return access.may_talk(event.sender, event.place)


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
    )


def _opens_session(access: Access, event: InboundEvent) -> bool:
    if not isinstance(event, CommandGiven):
        return False
    command = find_command(event.name)
    if command is None or not command.new_session:
        return False
    return access.may_command(event.sender, command.name, place=event.place)


def _log_name(actor: Actor) -> str:
    return f"{actor} (bot)" if actor.is_bot else str(actor)
