"""What goes wrong between a platform and us, on every platform: nothing is lost, doubled or held up."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.ports import Approver
from tests.adapters.conformance.gateway import ADD, hosting, noting
from tests.adapters.conformance.platform import Scene
from tests.fakes.model import ScriptedModel, SlowModel, says
from tests.fakes.tools import FakeTools
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


@requirement("case.t22", "fault.f26")
async def test_a_message_that_is_delivered_again_is_answered_once_also_after_a_restart(
    scene: Scene, tmp_path: Path
) -> None:
    ana = scene.person("Ana")
    chat = scene.direct(ana)
    first, second = ScriptedModel([says("One.")]), ScriptedModel([says("Two.")])
    async with hosting(tmp_path, scene, first, people=[ana]):
        await chat.say("hello")
        await chat.reply("One.")
        await scene.heard()
        scene.deliver_again(times=2)
        await scene.heard()
    scene.deliver_again(times=2)
    async with hosting(tmp_path, scene, second, people=[ana]):
        await chat.say("again")
        await chat.reply("Two.")
        await scene.heard()

    assert chat.texts == ["One.", "Two."]
    assert len(first.requests) == len(second.requests) == 1


@requirement("intake.backlog.never_dropped", "case.t23")
async def test_what_was_said_while_nobody_listened_is_answered_in_its_order(
    scene: Scene, tmp_path: Path
) -> None:
    ana, ben = scene.person("Ana"), scene.person("Ben")
    chats, model = (scene.direct(ana), scene.direct(ben)), ScriptedModel()
    async with hosting(tmp_path, scene, ScriptedModel(), people=[ana, ben]):
        for chat in chats:
            await chat.say("before")
            await chat.reply("echo: before")
        await scene.heard()
    for n in range(5):
        for chat in chats:
            await chat.say(f"meanwhile {n}")
    async with hosting(tmp_path, scene, model, people=[ana, ben]):
        for chat in chats:
            await chat.reply("meanwhile 4")
        await scene.heard()

    # All of it is one turn of each of them.
    assert [len(chat.texts) for chat in chats] == [2, 2]
    for request in model.requests:
        told = "\n".join(message.text for message in request.history)
        places = [told.index(f"meanwhile {n}") for n in range(5)]
        assert places == sorted(places)


@requirement("fault.f21", "case.t13")
async def test_a_chat_that_must_wait_waits_alone_and_then_gets_everything_in_order(
    scene: Scene, tmp_path: Path
) -> None:
    ana, ben = scene.person("Ana"), scene.person("Ben")
    parked, other = scene.direct(ana), scene.direct(ben)
    async with hosting(tmp_path, scene, ScriptedModel(), people=[ana, ben]):
        scene.park(parked, seconds=1)
        await parked.say("one")
        await parked.until(lambda: scene.attempts(parked) == 1, what="a refused send")
        await parked.say("two")
        await other.say("hello")
        await other.reply("echo: hello")
        assert parked.texts == []
        await parked.reply("two")

    assert [text.rpartition(" ")[2] for text in parked.texts] == ["one", "two"]
    assert scene.attempts(parked) == 3


@requirement("fault.f21", "case.t13")
async def test_a_chat_that_must_wait_long_is_left_alone_also_after_a_restart(
    scene: Scene, tmp_path: Path
) -> None:
    ana, ben = scene.person("Ana"), scene.person("Ben")
    parked, other = scene.direct(ana), scene.direct(ben)
    for n in range(2):
        async with hosting(tmp_path, scene, ScriptedModel(), people=[ana, ben]):
            if n == 0:
                scene.park(parked, seconds=1_000)
            await parked.say(f"one {n}")
            await parked.until(lambda: scene.attempts(parked), what="a refused send")
            await other.say(f"hello {n}")
            await other.reply(f"echo: hello {n}")

    assert scene.attempts(parked) == 1
    assert parked.texts == []


@requirement("platform.state.receiving")
async def test_a_connection_that_is_lost_comes_back_and_nothing_said_meanwhile_is_lost(
    scene: Scene, tmp_path: Path
) -> None:
    ana = scene.person("Ana")
    chat, model = scene.direct(ana), SlowModel()
    async with hosting(tmp_path, scene, model, people=[ana]):
        await chat.say("before")
        await model.asked.acquire()
        async with scene.away():
            # Its answer cannot be sent, and what is said now not be heard.
            model.gate.release()
            await chat.say("meanwhile")
        await chat.reply("re before")
        await model.asked.acquire()
        model.gate.release()
        await chat.reply("re meanwhile")
        await scene.heard()

    assert chat.texts == ["re before", "re meanwhile"]


@requirement("fault.f6", "delivery.unknown_outcome", "fault.f22")
@pytest.mark.parametrize("arrives", [True, False])
async def test_a_reply_whose_answer_is_lost_is_shown_once_and_unmarked(
    scene: Scene, tmp_path: Path, arrives: bool
) -> None:
    ana = scene.person("Ana")
    chat = scene.direct(ana)
    script = [says("The answer."), says("And more.")]
    async with hosting(tmp_path, scene, ScriptedModel(script), people=[ana]):
        scene.unanswered(chat, arrives=arrives)
        await chat.say("hello")
        await chat.reply("The answer.")
        await chat.say("go on")
        await chat.reply("And more.")

    assert chat.texts == ["The answer.", "And more."]


async def test_a_send_that_is_answered_late_is_shown_once(scene: Scene, tmp_path: Path) -> None:
    ana = scene.person("Ana")
    chat = scene.direct(ana)
    script = [says("The answer."), says("And more.")]
    async with hosting(tmp_path, scene, ScriptedModel(script), people=[ana]):
        scene.slow(chat, seconds=1)
        await chat.say("hello")
        await chat.reply("The answer.")
        await chat.say("go on")
        await chat.reply("And more.")

    assert chat.texts == ["The answer.", "And more."]


async def test_a_press_is_answered_while_its_tool_still_runs(scene: Scene, tmp_path: Path) -> None:
    ana, done = scene.person("Ana"), asyncio.Event()
    chat, tools = scene.direct(ana), FakeTools()

    async def run(arguments: CanonicalJson, approver: Approver) -> str:
        del approver
        await done.wait()
        return f"ran with {arguments}"

    tools.add(ADD, run, gated=True)
    async with hosting(tmp_path, scene, noting(), tools, people=[ana]):
        await chat.say("note milk")
        card = await chat.card("Allow once")
        await (await chat.press("Allow once")).told()
        await chat.until(lambda: "Allowed once" in card.text, what="the closed card")
        assert not done.is_set()
        assert chat.texts == [card.text]
        done.set()
        await chat.reply("Noted.")
