"""Named points on the path of a message where a test can break the process, armed by `HERMES_FAULT`.

Unset, reaching a point is one comparison. The core says where it is; what happens there is decided here.
"""

import asyncio
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

VARIABLE: Final = "HERMES_FAULT"
SLOW_SECONDS: Final = 5.0


class FaultPoint(StrEnum):
    """Where a process can be broken, in the order a message passes them."""

    INTAKE_RECEIVED = "intake.received"
    INTAKE_COMMITTED = "intake.committed"
    FILE_FETCHING = "file.fetching"
    FILE_KEPT = "file.kept"
    TURN_CLAIMED = "turn.claimed"
    MODEL_ASKED = "model.asked"
    MODEL_ANSWERED = "model.answered"
    APPROVAL_DECIDED = "approval.decided"
    TOOL_STARTED = "tool.started"
    TOOL_RETURNED = "tool.returned"
    TOOL_RECORDED = "tool.recorded"
    REPLY_READY = "reply.ready"
    REPLY_COMMITTED = "reply.committed"
    DELIVERY_CLAIMED = "delivery.claimed"
    DELIVERY_SENT = "delivery.sent"
    DELIVERY_MARKED = "delivery.marked"

    @property
    def summary(self) -> str:
        """What is done and what is not when this point is reached."""
        return _SUMMARIES[self]


_SUMMARIES: Final = {
    FaultPoint.INTAKE_RECEIVED: "An event arrived and is not stored.",
    FaultPoint.INTAKE_COMMITTED: "An event is stored, its platform not yet told.",
    FaultPoint.FILE_FETCHING: "A file of a stored message is being fetched.",
    FaultPoint.FILE_KEPT: "A file of a message is in the media folder, its row does not say so.",
    FaultPoint.TURN_CLAIMED: "A turn is claimed and has done nothing.",
    FaultPoint.MODEL_ASKED: "A model is about to be asked.",
    FaultPoint.MODEL_ANSWERED: "A model has answered, nothing of it is stored.",
    FaultPoint.APPROVAL_DECIDED: "A call may run or not, and has not started.",
    FaultPoint.TOOL_STARTED: "A call is recorded as started and has not left.",
    FaultPoint.TOOL_RETURNED: "A call has ended, its result is not stored.",
    FaultPoint.TOOL_RECORDED: "A call's result is stored.",
    FaultPoint.REPLY_READY: "A turn has its reply, not stored.",
    FaultPoint.REPLY_COMMITTED: "A reply and its deliveries are stored, nothing is sent.",
    FaultPoint.DELIVERY_CLAIMED: "A delivery says that it is being sent, and is not sent.",
    FaultPoint.DELIVERY_SENT: "A delivery was sent, its row does not say so.",
    FaultPoint.DELIVERY_MARKED: "A delivery and its row are done.",
}


class FaultAction(StrEnum):
    """What happens at a point: the process is killed, or the task raises, hangs, or is slow."""

    KILL = "kill"
    RAISE = "raise"
    HANG = "hang"
    SLOW = "slow"


class InjectedFault(Exception):
    """Raised at a point on request; nothing of ours expects it."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens when a point is reached for the nth time in this process."""

    point: FaultPoint
    nth: int
    action: FaultAction
    reached: int = 0


_armed: Fault | None = None


def parse(text: str) -> Fault:
    """Return the fault that `point:nth:action` names; `nth` counts from 1.

    Raises:
        ValueError: The text is not a fault; the message says what would be.
    """
    point, _, rest = text.partition(":")
    nth, _, action = rest.partition(":")
    if (
        point not in list(FaultPoint)
        or action not in list(FaultAction)
        or not (nth.isascii() and nth.isdigit() and int(nth))
    ):
        raise ValueError(
            f"{VARIABLE}={text} is no fault: write point:nth:action, with a point of "
            f"`hermes debug faults`, nth from 1, and {', '.join(FaultAction)}"
        )
    return Fault(point=FaultPoint(point), nth=int(nth), action=FaultAction(action))


@contextmanager
def armed(fault: Fault | None) -> Generator[None]:
    """Arm a fault until the block ends; None arms nothing."""
    global _armed
    _armed = fault
    try:
        yield
    finally:
        _armed = None


async def reach(point: FaultPoint) -> None:
    """Say that a point is passed; returns at once unless a fault is armed there.

    Raises:
        InjectedFault: That is the fault.
    """
    if _armed is None or _armed.point is not point:
        return
    _armed.reached += 1
    if _armed.reached != _armed.nth:
        return
    match _armed.action:
        case FaultAction.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        case FaultAction.RAISE:
            raise InjectedFault(f"{VARIABLE} at {point}")
        case FaultAction.HANG:
            await asyncio.Event().wait()
        case FaultAction.SLOW:
            await asyncio.sleep(SLOW_SECONDS)
        case _:
            assert_never(_armed.action)
