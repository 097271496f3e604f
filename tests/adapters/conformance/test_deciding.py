"""Cards and presses, on every platform: who may, what is seen, and what outlives a restart."""

import json
from pathlib import Path

import pytest

from tests.adapters.conformance.gateway import ADD, gated, hosting, noting
from tests.adapters.conformance.platform import Scene
from tests.fakes.house import rows
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

STATES = "SELECT state FROM question"
SHORTS = "SELECT short FROM question"


@requirement("platform.telegram.base_url")
async def test_a_message_becomes_a_card_and_a_press_runs_the_tool_once_as_the_card_then_says(
    scene: Scene, tmp_path: Path
) -> None:
    ana, tools = scene.person("Ana"), gated()
    chat = scene.direct(ana)
    async with hosting(tmp_path, scene, noting(then="**Noted.**"), tools, people=[ana]):
        await chat.say("note milk")
        card = await chat.card("Allow once")
        assert "milk" in card.text
        late = card.button("Deny")
        await (await chat.press("Allow once")).told()
        await chat.reply("Noted.")
        await chat.until(lambda: not card.labels, what="the closed card")

        assert "Allowed once by Ana" in card.text
        assert "milk" in card.text
        assert "Already settled" in await (await late.press()).told()
        assert tools.ran == [(ADD.name, '{"text":"milk"}')]


@requirement("case.t1", "threat.s1")
async def test_bystanders_are_told_so_alone_and_change_nothing(
    scene: Scene, tmp_path: Path
) -> None:
    ana, ben, eve = (scene.person(name) for name in ("Ana", "Ben", "Eve"))
    chat, tools = scene.group(ana, ben, eve), gated()
    async with hosting(tmp_path, scene, noting(), tools, people=[ana, ben]):
        await chat.say("note milk")
        card = await chat.card("Allow once")
        seen = (card.text, card.labels, chat.texts)
        for person in (ben, eve):
            told = [await (await chat.press(label, by=person)).told() for label in card.labels]
            assert all("can decide this" in text for text in told)

        assert (card.text, card.labels, chat.texts) == seen
        assert rows(tmp_path / "state.db", STATES) == [("pending",)]
        assert tools.ran == []
        await (await chat.press("Deny", by=ana)).told()
        await chat.until(lambda: "Denied by Ana" in card.text, what="the closed card")


@requirement("case.t3", "approval.decide.surfaces")
@pytest.mark.parametrize("native", [True, False])
async def test_the_id_a_card_shows_decides_typed_in_a_command(
    scene: Scene, tmp_path: Path, native: bool
) -> None:
    ana, tools = scene.person("Ana"), gated()
    chat = scene.direct(ana)
    async with hosting(tmp_path, scene, noting(), tools, people=[ana]):
        await chat.say("note milk")
        card = await chat.card("Allow once")
        ((short,),) = rows(tmp_path / "state.db", SHORTS)
        assert short in card.text
        if native:
            await chat.give("approve", short)
        else:
            await chat.say(f"/approve {short}")
        await chat.reply("Noted.")
        await chat.until(lambda: not card.labels, what="the closed card")

    assert "Allowed once by Ana" in card.text
    assert [name for name, _ in tools.ran] == [ADD.name]


@requirement("case.t6")
async def test_a_card_of_the_longest_names_in_a_thread_has_buttons_that_work(
    scene: Scene, tmp_path: Path
) -> None:
    ana, tools = scene.person("Ana"), FakeTools()
    spec = tools.add(tool("n" * 100, server="s" * 60), gated=True)
    model = ScriptedModel([calls((spec.alias, {"i" * 100: "x" * 500})), says("Noted.")])
    chat = scene.threaded(ana)
    async with hosting(tmp_path, scene, model, tools, people=[ana], groups=[chat]):
        plans = await chat.thread("Plans")
        await plans.say("note milk")
        card = await plans.card("Allow once")
        assert "n" * 100 in card.text
        await plans.press("Allow once")
        await plans.reply("Noted.")

    assert len(tools.ran) == 1


@requirement("case.f5", "threat.s5")
async def test_arguments_too_long_for_a_card_come_before_it_as_a_file(
    scene: Scene, tmp_path: Path
) -> None:
    ana, tools, text = scene.person("Ana"), gated(), "x" * 20_000
    chat = scene.direct(ana)
    async with hosting(tmp_path, scene, noting(text), tools, people=[ana]):
        await chat.say("note that")
        card = await chat.card("Allow once")
        first, second = (message for message in chat.shown if message.ours)
        ((name, data),) = first.files
        assert name.endswith(".json")
        assert json.loads(data) == {"text": text}
        assert second.id == card.id
        assert " chars)" in card.text
        await chat.press("Allow once")
        await chat.reply("Noted.")

    assert [json.loads(arguments) for _, arguments in tools.ran] == [{"text": text}]


async def test_a_card_in_a_thread_stays_there_and_is_decided_there(
    scene: Scene, tmp_path: Path
) -> None:
    ana, ben, tools = scene.person("Ana"), scene.person("Ben"), gated()
    chat = scene.threaded(ana, ben)
    async with hosting(tmp_path, scene, noting(), tools, people=[ana], groups=[chat]):
        plans, costs = await chat.thread("Plans"), await chat.thread("Costs")
        await plans.say("note milk")
        card = await plans.card("Allow once")
        assert "can decide this" in await (await plans.press("Allow once", by=ben)).told()
        await (await plans.press("Allow once")).told()
        await plans.reply("Noted.")
        await plans.until(lambda: not card.labels, what="the closed card")

        assert (chat.texts, costs.texts) == ([], [])
        assert [name for name, _ in tools.ran] == [ADD.name]


@requirement("case.t4")
async def test_a_press_on_an_expired_card_is_told_so_and_never_comes_again(
    scene: Scene, tmp_path: Path
) -> None:
    ana, tools = scene.person("Ana"), gated()
    chat = scene.direct(ana)
    model = noting(then="It was not allowed.")
    async with hosting(tmp_path, scene, model, tools, people=[ana], expiry=1):
        await chat.say("note milk")
        card = await chat.card("Allow once")
        allow = card.button("Allow once")
        await chat.until(lambda: not card.labels, what="the expired card")
        told = await (await allow.press()).told()
        await chat.reply("It was not allowed.")
        await scene.heard()

        assert "Too late: it was not run" in told
        assert "Expired" in card.text
        assert tools.ran == []


@requirement("fault.f8")
@pytest.mark.parametrize("crash", [False, True])
async def test_a_card_from_before_a_restart_is_decided_by_its_old_button(
    scene: Scene, tmp_path: Path, crash: bool
) -> None:
    ana, tools = scene.person("Ana"), gated()
    chat = scene.direct(ana)
    async with hosting(tmp_path, scene, noting(), tools, people=[ana], crash=crash):
        await chat.say("note milk")
        card = await chat.card("Allow once")
        allow = card.button("Allow once")
        await scene.heard()
    model = ScriptedModel(noting().script[1:])
    async with hosting(tmp_path, scene, model, tools, people=[ana]):
        await (await allow.press()).told()
        await chat.reply("Noted.")
        await chat.until(lambda: not card.labels, what="the closed card")

        assert "Allowed once by Ana" in card.text
        assert [name for name, _ in tools.ran] == [ADD.name]


async def test_a_press_that_is_delivered_again_decides_once(scene: Scene, tmp_path: Path) -> None:
    ana, tools = scene.person("Ana"), gated()
    chat = scene.direct(ana)
    async with hosting(tmp_path, scene, noting(), tools, people=[ana]):
        await chat.say("note milk")
        await chat.press("Allow once")
        await chat.reply("Noted.")
        await scene.heard()
        scene.deliver_again(times=3)
        await chat.say("and now?")
        await chat.reply("echo: and now?")
        await scene.heard()
    scene.deliver_again(last=2)
    async with hosting(tmp_path, scene, ScriptedModel(), tools, people=[ana]):
        await chat.say("after a restart")
        await chat.reply("echo: after a restart")

    assert [name for name, _ in tools.ran] == [ADD.name]
