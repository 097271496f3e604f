import asyncio

import pytest

from gateway.telemetry.faults import (
    Fault,
    FaultAction,
    FaultPoint,
    InjectedFault,
    armed,
    parse,
    reach,
)

pytestmark = pytest.mark.anyio


def raising(point: FaultPoint, nth: int) -> Fault:
    return parse(f"{point}:{nth}:raise")


async def test_unset_a_point_is_passed() -> None:
    for point in FaultPoint:
        await reach(point)


async def test_a_fault_fires_once_at_the_nth_passing_of_its_point_alone() -> None:
    with armed(raising(FaultPoint.MODEL_ASKED, 2)):
        await reach(FaultPoint.MODEL_ASKED)
        await reach(FaultPoint.MODEL_ANSWERED)
        with pytest.raises(InjectedFault):
            await reach(FaultPoint.MODEL_ASKED)
        await reach(FaultPoint.MODEL_ASKED)


async def test_a_fault_ends_with_its_block() -> None:
    with armed(raising(FaultPoint.MODEL_ASKED, 1)):
        pass
    await reach(FaultPoint.MODEL_ASKED)


async def test_a_task_that_hangs_can_still_be_cancelled_and_blocks_nothing_else() -> None:
    with armed(parse(f"{FaultPoint.REPLY_READY}:1:hang")):
        hanging = asyncio.create_task(reach(FaultPoint.REPLY_READY))
        await reach(FaultPoint.REPLY_COMMITTED)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging


@pytest.mark.parametrize("action", list(FaultAction))
def test_every_point_takes_every_action(action: FaultAction) -> None:
    for point in FaultPoint:
        fault = parse(f"{point}:3:{action}")
        assert (fault.point, fault.nth, fault.action) == (point, 3, action)


@pytest.mark.parametrize(
    "text",
    [
        "kill",
        "nowhere:1:kill",
        "reply.ready:0:kill",
        "reply.ready:-1:kill",
        "reply.ready:x:kill",
        "reply.ready:1",
        "reply.ready:1:explode",
        "reply.ready:²:kill",
        "reply.ready:1:kill:2",
    ],
)
def test_what_is_no_fault_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no fault: write point:nth:action"):
        parse(text)


def test_every_point_says_what_is_done_there() -> None:
    assert all(point.summary for point in FaultPoint)
