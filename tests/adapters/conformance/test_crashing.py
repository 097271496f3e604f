"""A process that ends in the middle of a message, on every platform: one answer all the same."""

from pathlib import Path

import pytest

from gateway.telemetry.faults import FaultPoint, armed, parse
from tests.adapters.conformance.gateway import hosting
from tests.adapters.conformance.platform import Scene
from tests.fakes.model import ScriptedModel
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

POINTS = (
    FaultPoint.INTAKE_RECEIVED,
    FaultPoint.INTAKE_COMMITTED,
    FaultPoint.TURN_CLAIMED,
    FaultPoint.MODEL_ANSWERED,
    FaultPoint.REPLY_COMMITTED,
    FaultPoint.DELIVERY_CLAIMED,
    FaultPoint.DELIVERY_SENT,
)


@requirement("intake.backlog.never_dropped", "delivery.unknown_outcome")
@pytest.mark.parametrize("point", POINTS)
async def test_a_message_whose_process_ends_is_answered_once_by_the_next(
    scene: Scene, tmp_path: Path, point: FaultPoint
) -> None:
    ana = scene.person("Ana")
    chat = scene.direct(ana)
    fault = parse(f"{point}:1:hang")
    async with hosting(tmp_path, scene, ScriptedModel(), people=[ana], streaming=False, crash=True):
        with armed(fault):
            await chat.say("are you there?")
            await eventually_async(lambda: fault.reached == 1, what="the middle of it")
    async with hosting(tmp_path, scene, ScriptedModel(), people=[ana], streaming=False):
        await chat.reply("echo: are you there?")
        await chat.say("good")
        await chat.reply("echo: good")
        await scene.heard()

    assert chat.texts == ["echo: are you there?", "echo: good"]
