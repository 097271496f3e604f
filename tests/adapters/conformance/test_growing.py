"""A reply is seen while it is written, and then it alone is left, whatever happened meanwhile."""

from pathlib import Path

import pytest

from gateway.domain.errors import ModelUnavailable
from gateway.runtime.turn import STOPPED
from tests.adapters.conformance.gateway import hosting
from tests.adapters.conformance.platform import Chat, Person, Platform, Scene
from tests.fakes.model import DictatedModel, calls, says
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

KINDS = pytest.mark.parametrize("kind", ["direct", "group"])


def opened(scene: Scene, kind: str) -> tuple[Person, Chat]:
    ana = scene.person("Ana")
    return ana, scene.direct(ana) if kind == "direct" else scene.group(ana)


def groups(chat: Chat, kind: str) -> list[Chat]:
    return [chat] if kind == "group" else []


@requirement("stream.as_generated", "design.reply.one_notification")
@KINDS
async def test_it_grows_and_then_the_whole_stands_alone(
    scene: Scene, tmp_path: Path, kind: str
) -> None:
    (ana, chat), model = opened(scene, kind), DictatedModel()
    async with hosting(tmp_path, scene, model, people=[ana], groups=groups(chat, kind)):
        await chat.say("hello")
        model.dictate("First", " words")
        await chat.until(lambda: "First words" in chat.growing, what="the first words")
        model.dictate(" and", " more")
        await chat.until(lambda: "and more" in chat.growing, what="what follows")
        model.dictate(says("First words and more."))
        await chat.until(lambda: chat.texts == ["First words and more."], what="the reply alone")
        await scene.heard()


@requirement("stream.as_generated")
@KINDS
async def test_what_is_said_before_tools_run_is_seen_and_half_an_answer_is_taken_back(
    scene: Scene, tmp_path: Path, kind: str
) -> None:
    (ana, chat), model = opened(scene, kind), DictatedModel()
    async with hosting(tmp_path, scene, model, people=[ana], groups=groups(chat, kind)):
        await chat.say("hello")
        search = calls(("tool_search", {"queries": ["x"]}), text="I look for it.")
        model.dictate("I look for it.", search)
        await chat.until(lambda: "I look for it." in chat.growing, what="what was said before")
        model.dictate(
            "Half an", ModelUnavailable("dictated", "cut"), "All of it", says("All of it.")
        )
        await chat.until(lambda: chat.texts == ["All of it."], what="the reply alone")


@requirement("stream.as_generated")
@KINDS
async def test_one_that_is_stopped_leaves_that_word_alone(
    scene: Scene, tmp_path: Path, kind: str
) -> None:
    (ana, chat), model = opened(scene, kind), DictatedModel()
    async with hosting(tmp_path, scene, model, people=[ana], groups=groups(chat, kind)):
        await chat.say("hello")
        model.dictate("First words")
        await chat.until(lambda: "First words" in chat.growing, what="the first words")
        await chat.give("stop")
        await chat.until(lambda: chat.texts == [STOPPED], what="that word alone")


@requirement("fault.f3", "design.reply.one_notification")
@KINDS
async def test_after_a_crash_in_the_middle_it_comes_once_and_alone(
    scene: Scene, tmp_path: Path, kind: str
) -> None:
    (ana, chat), model = opened(scene, kind), DictatedModel()
    kept = groups(chat, kind)
    async with hosting(tmp_path, scene, model, people=[ana], groups=kept, crash=True):
        await chat.say("hello")
        model.dictate("First words")
        await chat.until(lambda: "First words" in chat.growing, what="the first words")

    again = DictatedModel()
    async with hosting(tmp_path, scene, again, people=[ana], groups=kept):
        again.dictate("Other words", says("Other words."))
        await chat.until(lambda: chat.texts == ["Other words."], what="the reply alone")


@pytest.mark.parametrize("arrives", [True, False], ids=["arrives", "is lost"])
@KINDS
async def test_a_send_whose_answer_is_lost_leaves_the_reply_alone(
    scene: Scene, tmp_path: Path, kind: str, arrives: bool
) -> None:
    (ana, chat), model = opened(scene, kind), DictatedModel()
    async with hosting(tmp_path, scene, model, people=[ana], groups=groups(chat, kind)):
        await chat.say("hello")
        await chat.until(lambda: model.requests, what="a request")
        scene.unanswered(chat, arrives=arrives)
        model.dictate("First words")
        await chat.until(lambda: scene.attempts(chat) or chat.growing, what="that it is shown")
        model.dictate(" and more", says("First words and more."))
        await chat.until(lambda: chat.texts == ["First words and more."], what="the reply alone")
        await chat.say("and now?")
        model.dictate(says("Nothing."))
        await chat.reply("Nothing.")

    assert chat.texts == ["First words and more.", "Nothing."]


@requirement("case.t14")
@KINDS
async def test_in_a_chat_that_must_wait_nothing_is_shown_and_only_the_reply_is_sent(
    scene: Scene, tmp_path: Path, kind: str
) -> None:
    (ana, chat), model = opened(scene, kind), DictatedModel()
    async with hosting(tmp_path, scene, model, people=[ana], groups=groups(chat, kind)):
        await chat.say("hello")
        await chat.until(lambda: model.requests, what="a request")
        scene.park(chat, seconds=3)
        model.dictate("First words")
        await chat.until(lambda: scene.attempts(chat) or chat.growing, what="that it is shown")
        model.dictate(" and more", says("First words and more."))
        await chat.until(lambda: chat.texts == ["First words and more."], what="the reply alone")

    assert scene.attempts(chat) == 2


@requirement("stream.as_generated", "render.nothing_lost")
@KINDS
async def test_one_that_outgrows_a_message_ends_as_whole_pieces(
    platform: Platform, scene: Scene, tmp_path: Path, kind: str
) -> None:
    (ana, chat), model = opened(scene, kind), DictatedModel()
    limit = platform.renderer.capabilities.max_text or 0
    words = [f"word{n}" for n in range(limit // 3)]
    async with hosting(tmp_path, scene, model, people=[ana], groups=groups(chat, kind)):
        await chat.say("tell me everything")
        model.dictate(words[0])
        await chat.until(lambda: words[0] in chat.growing, what="the first word")
        model.dictate(" ".join(["", *words[1:]]), says(" ".join(words)))
        await chat.until(
            lambda: " ".join(chat.texts).split() == words, what="every word, in its order"
        )

    assert len(chat.texts) > 1
    assert max(map(platform.units, chat.texts)) <= limit
