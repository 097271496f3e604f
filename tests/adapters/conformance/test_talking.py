"""What people say and read, on every platform: whole, in its place, and disturbing nobody."""

from pathlib import Path

import pytest

from gateway.domain.model import ModelRequest
from tests.adapters.conformance.gateway import ADD, gated, hosting
from tests.adapters.conformance.platform import Ability, Platform, Scene, Shown
from tests.fakes.model import ScriptedModel, SlowModel, calls, says
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


def said_to(request: ModelRequest) -> str:
    """Return everything the model was told of what was said."""
    return "\n".join(message.text for message in request.history)


async def test_a_message_is_answered_in_its_chat_once(scene: Scene, tmp_path: Path) -> None:
    ana = scene.person("Ana")
    chat = scene.direct(ana)
    async with hosting(tmp_path, scene, ScriptedModel([says("Good day.")]), people=[ana]):
        await chat.say("hello")
        await chat.reply("Good day.")
        await scene.heard()

    assert chat.texts == ["Good day."]


@requirement("conversation.participant", "case.db9")
async def test_threads_keep_their_own_conversation_and_are_answered_inside(
    platform: Platform, scene: Scene, tmp_path: Path
) -> None:
    assert platform.has(Ability.THREADS)
    ana, ben = scene.person("Ana"), scene.person("Ben")
    chat, model = scene.threaded(ana, ben), ScriptedModel()
    async with hosting(tmp_path, scene, model, people=[ana, ben], groups=[chat]):
        plans, costs = await chat.thread("Plans"), await chat.thread("Costs")
        await plans.say("red")
        await plans.reply("echo: [Ana] red")
        await costs.say("green", by=ben)
        await costs.reply("echo: [Ben] green")
        await plans.say("blue", by=ben)
        await plans.reply("echo: [Ben] blue")

        assert len(chat.texts) == 0
        assert [len(plans.texts), len(costs.texts)] == [2, 1]
    # A thread is shared by its people, and by nobody outside of it.
    assert "red" in said_to(model.requests[2])
    assert "green" not in said_to(model.requests[2])


@requirement("conversation.participant")
async def test_in_a_plain_group_everybody_has_their_own_conversation(
    scene: Scene, tmp_path: Path
) -> None:
    ana, ben = scene.person("Ana"), scene.person("Ben")
    chat, model = scene.group(ana, ben), ScriptedModel()
    async with hosting(tmp_path, scene, model, groups=[chat]):
        await chat.say("red", by=ana)
        await chat.reply("echo: red")
        await chat.say("green", by=ben)
        await chat.reply("echo: green")

    assert "red" not in said_to(model.requests[1])


@requirement("access.mention.default", "access.strangers_silence")
async def test_in_a_group_it_listens_to_its_people_when_they_call_it_and_to_nobody_else(
    scene: Scene, tmp_path: Path
) -> None:
    ana, eve, robot = scene.person("Ana"), scene.person("Eve"), scene.robot("Robot")
    chat, model = scene.group(ana, eve, robot), ScriptedModel()
    async with hosting(tmp_path, scene, model, people=[ana], mention=True):
        await chat.say("just between us")
        await chat.say("let me in", by=eve, calling=True)
        await chat.say("beep", by=robot, calling=True)
        await chat.say("what is new?", calling=True)
        answer = await chat.reply("what is new?")
        await chat.say("and then?", answering=answer)
        await chat.reply("and then?")
        await scene.heard()

    assert len(chat.texts) == len(model.requests) == 2
    assert "between us" not in said_to(model.requests[1])


@requirement("access.mention.threads")
@pytest.mark.parametrize("strict", [False, True])
async def test_in_a_thread_it_was_called_into_it_follows_unless_it_is_strict(
    scene: Scene, tmp_path: Path, strict: bool
) -> None:
    ana, ben = scene.person("Ana"), scene.person("Ben")
    chat, model = scene.threaded(ana, ben), ScriptedModel()
    async with hosting(tmp_path, scene, model, groups=[chat], mention=True, strict_mention=strict):
        plans, costs = await chat.thread("Plans"), await chat.thread("Costs")
        await plans.say("not yet")
        await plans.say("red", calling=True)
        await plans.reply("red")
        await costs.say("not here")
        await plans.say("green", by=ben)
        await plans.say("blue", calling=True)
        await plans.reply("blue")
        await scene.heard()

    told = said_to(model.requests[-1])
    assert ("green" in told) is not strict
    assert "not yet" not in told
    assert costs.texts == []


@requirement("access.pairing.code", "access.strangers_silence")
@pytest.mark.parametrize("policy", ["pair", "ignore"])
async def test_a_stranger_is_offered_a_code_once_or_gets_silence(
    scene: Scene, tmp_path: Path, policy: str
) -> None:
    ana, eve = scene.person("Ana"), scene.person("Eve")
    known, stranger, model = scene.direct(ana), scene.direct(eve), ScriptedModel()
    async with hosting(tmp_path, scene, model, people=[ana], dm_policy=policy):
        await stranger.say("let me in")
        await stranger.say("please")
        if policy == "pair":
            await stranger.reply("pairing code")
        await known.say("hello")
        await known.reply("hello")
        await scene.heard()

    assert len(stranger.texts) == (policy == "pair")
    assert "let me in" not in "".join(stranger.texts)
    assert len(model.requests) == 1


@requirement("render.fences", "render.nothing_lost", "case.f4")
async def test_a_long_reply_comes_in_pieces_within_the_limit_with_its_code_as_code(
    platform: Platform, scene: Scene, tmp_path: Path
) -> None:
    ana = scene.person("Ana")
    chat = scene.direct(ana)
    limit = platform.renderer.capabilities.max_text
    assert limit is not None
    code = [f"line {n} of code" for n in range(limit // 8)]
    words = [f"word{n}" for n in range(limit // 4)]
    text = "\n".join(["Before.", "", "```python", *code, "```", "", " ".join(words)])
    async with hosting(tmp_path, scene, ScriptedModel([says(text)]), people=[ana]):
        await chat.say("tell me everything")
        await chat.found(lambda m: m.ours and words[-1] in m.text.split(), "the last word")

    pieces = [message for message in chat.shown if message.ours]
    assert len(pieces) > 2
    assert max(platform.units(piece.text) for piece in pieces) <= limit
    assert "\n".join(part for piece in pieces for part in piece.code).split("\n") == code
    everything = "\n".join(piece.text for piece in pieces).split()
    assert [word for word in everything if word.startswith("word")] == words


@requirement("case.f6", "render.never_cuts_pairs")
async def test_emoji_beyond_one_message_come_whole(
    platform: Platform, scene: Scene, tmp_path: Path
) -> None:
    ana = scene.person("Ana")
    chat = scene.direct(ana)
    count = (platform.renderer.capabilities.max_text or 0) + 100
    async with hosting(tmp_path, scene, ScriptedModel([says("👍" * count)]), people=[ana]):
        await chat.say("well?")
        await chat.until(lambda: sum(map(thumbs, chat.shown)) == count, what="every thumb")

    assert set("".join(chat.texts)) == {"👍"}


def thumbs(message: Shown) -> int:
    return message.text.count("👍")


@requirement("command.telegram_names")
async def test_commands_are_given_natively_and_as_text(scene: Scene, tmp_path: Path) -> None:
    ana = scene.person("Ana")
    chat = scene.direct(ana)
    async with hosting(tmp_path, scene, ScriptedModel(), gated(), people=[ana]):
        await chat.give("whoami")
        await chat.reply(f"{scene.platform.name}:{ana.id}")
        await chat.give("tools", "add_note")
        native = await chat.reply(ADD.alias)
        await chat.say("/tools add_note")
        await chat.found(lambda m: m.ours and m.id != native.id and ADD.alias in m.text, "a second")
        await chat.give("reload-mcp")
        await chat.reply("You may not use /reload-mcp")


@requirement("fault.f27")
async def test_a_message_that_is_changed_is_answered_as_it_says_then_and_never_twice(
    platform: Platform, scene: Scene, tmp_path: Path
) -> None:
    assert platform.has(Ability.CHANGES)
    ana = scene.person("Ana")
    chat, model = scene.direct(ana), SlowModel()
    async with hosting(tmp_path, scene, model, people=[ana]):
        first = await chat.say("first")
        await model.asked.acquire()
        second = await chat.say("secnod")
        await scene.heard()
        await chat.change(second, "second")
        await chat.change(first, "the first")
        await scene.heard()
        model.gate.release()
        await model.asked.acquire()
        model.gate.release()
        await chat.reply("second")
        await chat.change(second, "the second")
        await scene.heard()
        await chat.say("third")
        await model.asked.acquire()
        model.gate.release()
        await chat.reply("third")

    assert len(model.requests) == 3
    told = said_to(model.requests[2])
    assert "secnod" not in told
    assert "the first" in told
    assert "the second" in told


@requirement("threat.s23")
async def test_what_a_model_or_a_server_says_notifies_nobody_and_looks_the_same(
    platform: Platform, scene: Scene, tmp_path: Path
) -> None:
    ana, ben = scene.person("Ana"), scene.person("Ben")
    chat = scene.group(ana, ben)
    loud = f"Hear: {' '.join(platform.everybody)}"
    tools = FakeTools()
    spec = tools.add(tool("shout", description=f"Tells {loud}"), gated=True)
    model = ScriptedModel([calls((spec.alias, {"text": loud})), says(f"{loud}\n\n* {loud}")])
    async with hosting(tmp_path, scene, model, tools, groups=[chat]):
        await chat.say("shout")
        card = await chat.card("Deny")
        assert card.pings == []
        await chat.press("Allow once")
        reply = await chat.reply("Hear: ")
        await chat.until(lambda: not card.labels, what="the closed card")

        assert (reply.pings, card.pings) == ([], [])
        assert all(text in seen(reply) for text in platform.visible)


def seen(message: Shown) -> str:
    """Return a text without what has no width."""
    return message.text.replace("\u2060", "").replace("\u200b", "")
