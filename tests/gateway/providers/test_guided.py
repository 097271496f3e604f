import json
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from gateway.domain.model import (
    AssistantSaid,
    Finish,
    FunctionAnswer,
    FunctionCall,
    ModelMessage,
    ModelReply,
    ModelRequest,
    Usage,
    UserSaid,
)
from gateway.providers.guided import MAX_LABEL, MAX_QUERY, MAX_RESULT, Guided
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

Json = Mapping[str, object]


class Conversation:
    """Plays the turn's part: keeps the history, answers the calls of guided mode."""

    def __init__(self, *before: ModelMessage) -> None:
        self.history: list[ModelMessage] = list(before)

    async def say(self, *texts: str) -> ModelReply:
        self.history.extend(UserSaid(text=text) for text in texts)
        return await self.next()

    async def answer(self, content: object, *, failed: bool = False) -> ModelReply:
        """Answer the last call and return the next step."""
        call = self.call
        text = content if isinstance(content, str) else json.dumps(content)
        self.history.append(FunctionAnswer(id=call.id, name=call.name, text=text, failed=failed))
        return await self.next()

    async def next(self) -> ModelReply:
        request = ModelRequest(system="", history=tuple(self.history))
        reply = await Guided().complete(request)
        self.history.append(AssistantSaid(text=reply.text, calls=reply.calls))
        return reply

    @property
    def call(self) -> FunctionCall:
        last = self.history[-1]
        assert isinstance(last, AssistantSaid)
        return last.calls[0]


def tool(name: str = "mcp__demo__add", **more: str) -> Json:
    return {"name": name, "server": "demo", "title": "", "description": "Adds.", **more}


def found(*tools: Json, connecting: Sequence[str] = ()) -> Json:
    return {"results": [{"query": "q", "tools": tools}], "connecting": connecting}


def asked(reply: ModelReply) -> tuple[str, Json]:
    (call,) = reply.calls
    assert reply.finish is Finish.TOOLS
    return call.name, cast("Json", json.loads(call.arguments))


async def up_to_call(talk: Conversation, arguments: Json | None = None) -> ModelReply:
    await talk.say("add two numbers")
    await talk.answer(found(tool()))
    await talk.answer({"picked": "mcp__demo__add", "reason": ""})
    return await talk.answer({"action": "accept", "arguments": arguments or {}})


@requirement("guided.suggests")
async def test_plain_text_is_looked_up_with_the_tool_search() -> None:
    reply = await Conversation().say("add two numbers")

    assert asked(reply) == ("tool_search", {"queries": ["add two numbers"], "limit": 5})


@requirement("guided.suggests")
async def test_the_best_matches_become_choices() -> None:
    talk = Conversation()
    await talk.say("add two numbers")
    reply = await talk.answer(found(*(tool(f"mcp__demo__t{n}") for n in range(7))))

    name, arguments = asked(reply)
    assert name == "ask_choice"
    assert arguments["options"] == [
        {"value": f"mcp__demo__t{n}", "label": f"demo · t{n} — Adds."} for n in range(5)
    ]


@requirement("guided.suggests")
async def test_a_label_is_one_short_line() -> None:
    talk = Conversation()
    await talk.say("x")
    reply = await talk.answer(found(tool(description="First line\n\n" + "long " * 100)))

    options = cast("Sequence[Mapping[str, str]]", asked(reply)[1]["options"])
    label = options[0]["label"]
    assert label.startswith("demo · add — First line long long")
    assert len(label) == MAX_LABEL
    assert label.endswith("…")


@requirement("guided.suggests")
async def test_nothing_found_says_what_to_try_and_who_still_connects() -> None:
    talk = Conversation()
    await talk.say("fly to the moon")
    reply = await talk.answer(found(connecting=["linear", "github"]))

    assert reply.finish is Finish.STOP
    assert "fly to the moon" in reply.text
    assert "/tools" in reply.text
    assert "Still connecting: linear, github" in reply.text


@requirement("guided.completes")
async def test_a_turn_goes_from_text_to_the_result() -> None:
    talk = Conversation()
    await talk.say("add two numbers")
    await talk.answer(found(tool()))
    filled = asked(await talk.answer({"picked": "mcp__demo__add", "reason": ""}))
    called = asked(await talk.answer({"action": "accept", "arguments": {"a": 2, "b": 3}}))
    reply = await talk.answer("5")

    assert filled == ("ask_arguments", {"tool": "mcp__demo__add"})
    assert called == (
        "tool_call",
        {"calls": [{"name": "mcp__demo__add", "arguments": {"a": 2, "b": 3}}]},
    )
    assert (reply.text, reply.finish) == ("5", Finish.STOP)
    assert (reply.model, reply.usage) == ("guided", Usage())


@requirement("guided.completes")
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"picked": None, "reason": ""}, "Nothing was run."),
        ({"picked": None, "reason": "the time ran out"}, "Nothing was run. (the time ran out)"),
    ],
)
async def test_without_a_choice_nothing_is_run(answer: Json, text: str) -> None:
    talk = Conversation()
    await talk.say("add")
    await talk.answer(found(tool()))
    reply = await talk.answer(answer)

    assert (reply.text, reply.calls) == (text, ())


@requirement("guided.completes")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_form_that_is_not_sent_runs_nothing(action: str) -> None:
    talk = Conversation()
    await talk.say("add")
    await talk.answer(found(tool()))
    await talk.answer({"picked": "mcp__demo__add"})
    reply = await talk.answer({"action": action, "reason": "declined by Ann"})

    assert reply.text == "Nothing was run. (declined by Ann)"


@requirement("guided.completes")
async def test_a_refusal_and_an_error_are_said_plainly() -> None:
    talk = Conversation()
    await up_to_call(talk)
    refused = await talk.answer("Denied by Ann; the tool did not run.", failed=True)
    await up_to_call(talk)
    failed = await talk.answer("", failed=True)

    assert refused.text == "That did not work: Denied by Ann; the tool did not run."
    assert failed.text == "That did not work: no reason was given."


async def test_a_result_in_json_is_shown_as_a_block() -> None:
    talk = Conversation()
    await up_to_call(talk)
    reply = await talk.answer({"total": 5, "note": "``` inside"})

    assert reply.text.startswith("````json\n{\n  ")
    assert reply.text.endswith("\n````")


async def test_a_long_result_is_cut_and_says_by_how_much() -> None:
    talk = Conversation()
    await up_to_call(talk)
    reply = await talk.answer("x" * (MAX_RESULT + 10))

    assert reply.text.endswith("x\n… (+10 characters)")


async def test_a_tool_without_text_is_done() -> None:
    talk = Conversation()
    await up_to_call(talk)

    assert (await talk.answer("  ")).text == "Done; the tool returned no text."


async def test_several_messages_are_one_wish() -> None:
    reply = await Conversation().say("add", "two numbers")

    assert asked(reply)[1]["queries"] == ["add\ntwo numbers"]


async def test_earlier_turns_do_not_count() -> None:
    talk = Conversation()
    await up_to_call(talk)
    await talk.answer("5")
    reply = await talk.say("list issues")

    assert asked(reply) == ("tool_search", {"queries": ["list issues"], "limit": 5})


async def test_a_speakers_name_is_not_searched_for() -> None:
    reply = await Conversation().say("[Ann] add", "[Bob B.] two [big] numbers")

    assert asked(reply)[1]["queries"] == ["add\ntwo [big] numbers"]


async def test_much_text_keeps_its_newest_part() -> None:
    reply = await Conversation().say("old " * MAX_QUERY, "list issues")

    assert asked(reply)[1]["queries"] == ["list issues"]


async def test_a_very_long_wish_is_shortened() -> None:
    reply = await Conversation().say("word " * MAX_QUERY)

    queries = cast("Sequence[str]", asked(reply)[1]["queries"])
    assert len(queries[0]) == MAX_QUERY


async def test_a_message_without_words_asks_for_some() -> None:
    reply = await Conversation().say("  ")

    assert "Say in words" in reply.text


async def test_what_is_written_meanwhile_is_taken_up_after_the_result() -> None:
    talk = Conversation()
    await up_to_call(talk)
    call = talk.call
    talk.history.append(FunctionAnswer(id=call.id, name=call.name, text="5"))
    again = await talk.say("list issues")
    reply = await talk.answer(found())

    assert asked(again) == ("tool_search", {"queries": ["list issues"], "limit": 5})
    assert reply.text.startswith("5\n\nI found no tool for “list issues”")


@requirement("guided.completes")
async def test_a_turn_that_was_interrupted_goes_on_where_it_was() -> None:
    talk = Conversation()
    await up_to_call(talk)
    interrupted = tuple(talk.history)

    for end in range(1, len(interrupted)):
        request = ModelRequest(system="", history=interrupted[:end])
        reply = await Guided().complete(request)
        following = next(m for m in interrupted[end - 1 :] if isinstance(m, AssistantSaid))
        assert reply.calls == following.calls


async def test_ids_of_calls_do_not_repeat() -> None:
    talk = Conversation()
    for _ in range(2):
        await up_to_call(talk)
        await talk.answer("5")

    calls = [m.calls[0].id for m in talk.history if isinstance(m, AssistantSaid) and m.calls]
    assert len(set(calls)) == len(calls) == 8


@pytest.mark.parametrize("content", ["not json", "[]", '{"results": 7}', '{"results": [{}, 1]}'])
async def test_an_answer_it_cannot_read_ends_the_turn_with_words(content: str) -> None:
    talk = Conversation()
    await talk.say("add")
    reply = await talk.answer(content)

    assert (reply.calls, bool(reply.text)) == ((), True)


async def test_the_final_text_is_heard_by_a_listener() -> None:
    talk = Conversation()
    await up_to_call(talk)
    call = talk.call
    answer = FunctionAnswer(id=call.id, name=call.name, text="5")
    heard: list[str] = []
    request = ModelRequest(system="", history=(*talk.history, answer))
    await Guided().complete(request, on_text=heard.append)

    assert heard == ["5"]


def test_it_works_with_a_person_and_has_no_window() -> None:
    guided = Guided()

    assert (guided.name, guided.asks_person, guided.context_window) == ("guided", True, None)
