"""What people do to their sessions from a chat: take back, ask again, name, list, go back, count."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.ids import ChatType, Place
from gateway.domain.model import ModelReply, ModelRequest
from gateway.runtime.access import Access
from gateway.runtime.access_door import Door
from gateway.runtime.assignments import NOTHING_LEFT
from gateway.runtime.config import AccessConfig, RateConfig
from gateway.runtime.runtime import RuntimeConfig
from tests.fakes.house import ADMIN, House, running
from tests.fakes.loopback import ANNA, BEN, PLATFORM
from tests.fakes.model import ScriptedModel, SlowModel, calls_tool, says
from tests.fakes.tools import FakeTools, tool
from tests.support.people import ROOT, dm, people
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ROOM = Place(platform=PLATFORM, chat="room", chat_type=ChatType.THREAD, thread="t")
"""Several people share this conversation."""


def said(request: ModelRequest) -> list[str]:
    return [item.text for item in request.history]


async def answered(house: House, count: int) -> str:
    """Return the newest text once there are so many."""
    return (await house.replies(count))[-1]


@requirement("command.session_history")
async def test_retry_answers_the_last_messages_again_and_the_new_answer_takes_the_place_of_the_old(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([says("hi"), says("bad"), says("better"), says("fine")])
    async with running(tmp_path, model) as house:
        await house.say("hello")
        await answered(house, 1)
        await house.say("and now?")
        await answered(house, 2)
        await house.give("retry")
        assert await answered(house, 3) == "better"
        await house.say("thanks")
        await answered(house, 4)

    assert said(model.requests[2]) == ["hello", "hi", "and now?"]
    assert said(model.requests[3]) == ["hello", "hi", "and now?", "better", "thanks"]


@requirement("command.session_history")
async def test_a_retry_asks_before_a_write_runs_a_second_time(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(tool("add_note"), gated=True)
    write = calls_tool("mcp__demo__add_note", text="x")
    model = ScriptedModel([write, says("done"), write, says("done again")])
    async with running(tmp_path, model, tools=tools) as house:
        await house.say("add x")
        await house.press("Allow once", card=0)
        await answered(house, 1)
        await house.give("retry")
        await house.adapter.until(lambda: len(house.adapter.cards()) == 2)
        assert len(tools.ran) == 1
        await house.press("Deny", card=1)
        assert await answered(house, 2) == "done again"

    assert len(tools.ran) == 1


@requirement("command.session_history")
async def test_a_retry_that_fails_leaves_the_conversation_as_it_was(tmp_path: Path) -> None:
    model = ScriptedModel([says("old"), says(""), says(""), says("fine")])
    async with running(tmp_path, model) as house:
        await house.say("hello")
        await answered(house, 1)
        await house.give("retry")
        assert "empty answer" in await answered(house, 2)
        await house.say("more")
        await answered(house, 3)

    assert said(model.requests[3])[:2] == ["hello", "old"]


async def test_who_retries_words_of_another_may_do_what_both_may(tmp_path: Path) -> None:
    model = ScriptedModel([says("one"), says("two")])
    async with running(tmp_path, model) as house:
        await house.say("hello", place=ROOM, sender=BEN)
        await house.replies(1, place=ROOM)
        await house.give("retry", place=ROOM, sender=ANNA)
        await house.replies(2, place=ROOM)
        requesters = house.rows("SELECT requester FROM turn ORDER BY id")

    assert said(model.requests[1]) == ["[Ben] hello"]
    assert requesters == [(str(BEN),), (str(ANNA),)]


@requirement("command.session_history")
async def test_undo_takes_the_last_exchange_from_the_model_and_leaves_it_readable(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([says("hi"), says("secret noted"), says("what secret?")])
    async with running(tmp_path, model) as house:
        await house.say("hello")
        await answered(house, 1)
        await house.say("my secret is 42")
        await answered(house, 2)
        await house.give("undo")
        assert "“my secret is 42”" in await answered(house, 3)
        await house.say("what is it?")
        await answered(house, 4)
        kept = house.rows("SELECT body FROM message ORDER BY id")

    assert said(model.requests[2]) == ["hello", "hi", "what is it?"]
    assert [text for (text,) in kept][:4] == ["hello", "hi", "my secret is 42", "secret noted"]


@requirement("command.session_history")
async def test_one_undo_after_another_goes_back_to_the_beginning(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel()) as house:
        for n in range(2):
            await house.say(f"m{n}")
            await answered(house, n + 1)
        for n in range(3):
            await house.give("undo")
            await answered(house, n + 3)
        texts = house.adapter.texts()

    assert ["“m1”" in texts[2], "“m0”" in texts[3], texts[4] == NOTHING_LEFT] == [True] * 3


@requirement("command.session_history")
async def test_what_is_given_in_a_row_takes_effect_in_that_order(tmp_path: Path) -> None:
    model = SlowModel()
    async with running(tmp_path, model) as house:
        await house.say("first")
        await model.asked.acquire()
        # All of this waits for the running turn; only then does its answer exist to be taken back.
        await house.give("undo")
        await house.give("new")
        await house.say("second")
        await house.give("undo")
        await house.say("third")
        for _ in range(3):
            model.gate.release()
        await house.adapter.until(lambda: "re third" in house.adapter.texts())
        sessions = house.rows("SELECT session_id, body, hidden_at IS NULL FROM message ORDER BY id")

    assert [item for item in sessions if item[1].endswith("first")] == [
        (1, "first", 0),
        (1, "re first", 0),
    ]
    assert [item for item in sessions if item[0] == 2] == [
        (2, "second", 0),
        (2, "third", 1),
        (2, "re second", 0),
        (2, "re third", 1),
    ]
    assert model.users(-1) == ["third"]


async def test_a_retry_that_a_crash_cuts_off_answers_the_same_messages(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def hang(request: ModelRequest) -> ModelReply:
        asked.set()
        await asyncio.Event().wait()
        return says("never")

    model = ScriptedModel([says("old"), hang])
    async with running(tmp_path, model, crash=True) as house:
        await house.say("hello")
        await answered(house, 1)
        await house.give("retry")
        await asked.wait()
        await house.say("later")

    again = ScriptedModel([says("new"), says("yes")])
    async with running(tmp_path, again) as house:
        assert (await house.replies(3))[1:] == ["new", "yes"]

    assert said(again.requests[0]) == ["hello"]
    assert said(again.requests[1]) == ["hello", "new", "later"]


@requirement("command.session_history")
async def test_sessions_are_listed_named_and_gone_back_to(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with running(tmp_path, model) as house:
        await house.say("about Rome")
        await answered(house, 1)
        await house.give("title", "  Trip to  Rome ")
        assert await answered(house, 2) == "Session 1 is called “Trip to Rome” now."
        await house.give("title")
        assert await answered(house, 3) == "Session 1 is called “Trip to Rome”."
        await house.give("new")
        await answered(house, 4)
        await house.say("something else")
        await answered(house, 5)

        await house.give("sessions")
        listed = (await answered(house, 6)).splitlines()
        assert listed[0].startswith("- **2** (this one): no title, 2 messages, begun ")
        assert listed[1].startswith("- **1**: “Trip to Rome”, 2 messages, begun ")

        await house.give("resume", "1")
        await house.say("go on")
        await house.adapter.until(lambda: "echo: go on" in house.adapter.texts())
        assert any(
            text.startswith("Session 1 goes on: “Trip to Rome”") for text in house.adapter.texts()
        )
        for argument, words in (
            ("1", "Session 1 is the one you are in"),
            ("9", "There is no session 9 here; /sessions lists them."),
            ("one", "Usage: `/resume N`"),
            ("", "Usage: `/resume N`"),
        ):
            count = len(house.adapter.texts())
            await house.give("resume", argument)
            assert words in await answered(house, count + 1)

    assert said(model.requests[-1]) == ["about Rome", "echo: about Rome", "go on"]


@requirement("command.session_history")
async def test_usage_counts_the_session_and_the_conversation(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel([says("one"), says("two")])) as house:
        await house.say("a")
        await answered(house, 1)
        await house.give("new")
        await answered(house, 2)
        await house.say("b")
        await answered(house, 3)
        await house.give("usage")
        assert await answered(house, 4) == (
            "- Session 2: 10 tokens in, 5 out\n"
            "- This conversation, 2 sessions: 20 tokens in, 10 out"
        )


async def test_a_title_that_is_too_long_and_a_missing_one_are_said(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        assert await chat.say("title") == "Session 1 has no title; `/title TEXT` gives it one."
        assert "at most 100 characters; this one has 101" in await chat.say("title", "x" * 101)


async def test_an_admin_chooses_the_model_of_a_session_and_takes_that_back(tmp_path: Path) -> None:
    place = dm(ROOT)
    async with people(tmp_path / "state.db") as chat:
        shown = await chat.say("model", by=ROOT, place=place)
        assert shown.startswith("**scripted:model** answers here, as configured.")
        chosen = await chat.say("model", "scripted:other", by=ROOT, place=place)
        assert chosen.startswith("**scripted:other** answers in this session")
        shown = await chat.say("model", by=ROOT, place=place)
        assert "scripted:other" in shown
        assert (await chat.turn(place=place, sender=ROOT)).model == "scripted:other"
        assert await chat.say("model", "openai:x", by=ROOT, place=place) == (
            "That model cannot be used: it needs a key."
        )
        assert "one word" in await chat.say("model", "the good one", by=ROOT, place=place)
        assert "scripted:model" in await chat.say("model", "default", by=ROOT, place=place)
        assert "Only an admin" in await chat.say("model", "scripted:other")
        assert "An admin may choose another" in await chat.say("model")


async def test_the_chosen_model_answers_until_it_cannot_be_used(tmp_path: Path) -> None:
    known = {"other": ScriptedModel(name="other")}
    async with running(tmp_path, ScriptedModel(), models=known) as house:
        await house.give("model", "other", sender=ADMIN)
        await answered(house, 1)
        async with asyncio.timeout(10):
            await house.say("hi", sender=ADMIN)
            await answered(house, 2)
        known.clear()
        await house.say("still there?", sender=ADMIN)
        assert "The model other could not answer" in await answered(house, 3)


@requirement("command.session_history")
async def test_a_queued_text_is_answered_alone_and_can_be_retried(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel()) as house:
        await house.give("queue", "by itself")
        assert await answered(house, 1) == "echo: by itself"
        await house.give("retry")
        assert await answered(house, 2) == "echo: by itself"
        turns = house.rows("SELECT count(*) FROM turn")

    assert turns == [(2,)]


@requirement("access.rate_quota")
async def test_a_retry_takes_of_the_days_tokens_as_a_message_does(tmp_path: Path) -> None:
    config = RuntimeConfig(rate=RateConfig(tokens_per_day=15))
    model = ScriptedModel([says("one"), says("never")])
    door = Door(people=frozenset({ANNA.id}))
    judge = Access(AccessConfig(), doors={(PLATFORM, ""): door})
    async with running(tmp_path, model, config=config, judge=judge) as house:
        await house.say("hello")
        await answered(house, 1)
        await house.give("retry")
        assert "You have used the 15 model tokens" in await answered(house, 2)

    assert len(model.requests) == 1
