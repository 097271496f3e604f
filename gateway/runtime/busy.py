"""What becomes of a message that arrives while its conversation works. Runs and ends no turn."""

import logging
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, assert_never

from gateway.domain.delivery import Origin
from gateway.domain.errors import StoreBusy
from gateway.domain.ids import Account, Place
from gateway.domain.message import InboundEvent, InboundMessage
from gateway.domain.operations.deliveries import Enqueue
from gateway.domain.operations.turns import Claim
from gateway.ports import DeliveryStore, Reacting, Renderer
from gateway.runtime.access import Access
from gateway.runtime.config import BusyMode
from gateway.runtime.wakeups import Wakeups

logger = logging.getLogger(__name__)

QUEUED: Final = "Queued; I answer it after this."


class Fate(Enum):
    """It is answered by a later turn, ends the running one, or joins its next round."""

    WAITS = auto()
    INTERRUPTS = auto()
    JOINS = auto()


class Busy:
    """The rule of `gateway.busy_mode`, and the mark or the word that something waits."""

    def __init__(
        self,
        *,
        store: DeliveryStore,
        access: Access,
        renderers: Mapping[str, Renderer],
        wakeups: Wakeups,
        mode: BusyMode,
        reacting: Mapping[Account, Reacting] | None = None,
    ) -> None:
        self._store = store
        self._access = access
        self._renderers = renderers
        self._wakeups = wakeups
        self._mode = mode
        self._reacting = reacting or {}

    def joins_at_start(self, claim: Claim) -> bool:
        """Say whether a claimed turn looks for what joins it before anything arrives.

        What waits and continues a turn that is taken up again came while it ran.
        """
        return claim.resumed and self._mode is BusyMode.STEER

    def fate(self, event: InboundEvent, claim: Claim) -> Fate:
        """Say what becomes of an event that arrives during a claimed turn.

        Only a plain message touches the turn; it interrupts when its sender may end the turn.
        """
        if not isinstance(event, InboundMessage) or event.alone:
            return Fate.WAITS
        match self._mode:
            case BusyMode.QUEUE:
                return Fate.WAITS
            case BusyMode.INTERRUPT:
                own = str(event.sender) == str(claim.requester)
                may = own or self._access.may_command(event.sender, "stop", place=event.place)
                return Fate.INTERRUPTS if may else Fate.WAITS
            case BusyMode.STEER:
                return Fate.JOINS if _may_continue(event, claim) else Fate.WAITS
            case _:
                assert_never(self._mode)

    def can_mark(self, place: Place) -> bool:
        """Say whether messages of a chat can be marked as waiting, so that no word is needed."""
        return (place.platform, place.account) in self._reacting

    async def mark(self, event: InboundEvent) -> bool:
        """Mark a message as one that is answered later; False when it cannot be."""
        adapter = self._reacting[(event.place.platform, event.place.account)]
        return await adapter.show_waiting(event.place, event.native_id)

    async def say_it_waits(self, claim: Claim) -> None:
        """Tell the conversation of a running turn, once, that something is answered after it."""
        renderer = self._renderers.get(claim.place.platform)
        parts = renderer.text(QUEUED) if renderer is not None else ()
        if not parts:
            return
        note = Enqueue(
            place=claim.place,
            group_key=f"queued:{claim.turn}",
            parts=parts,
            origin=Origin.NOTICE,
        )
        try:
            await self._store.enqueue(note)
        except StoreBusy as error:
            # The message itself is stored; a late word would only puzzle.
            logger.info("not told that a message waits: %s", error)
            return
        self._wakeups.deliveries()


def _may_continue(event: InboundMessage, claim: Claim) -> bool:
    """Say whether the store may let a message join; only it knows the order and the session."""
    first = claim.inputs[0].event if claim.inputs else None
    return (
        isinstance(first, InboundMessage)
        and not first.alone
        and str(event.sender) == str(first.sender)
    )
