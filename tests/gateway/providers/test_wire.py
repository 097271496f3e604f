import asyncio
import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from gateway.domain.canonical import canonical
from gateway.domain.errors import ModelError, ModelRejected
from gateway.domain.model import (
    AssistantSaid,
    Finish,
    FunctionAnswer,
    FunctionCall,
    FunctionSpec,
    ModelRequest,
    Picture,
    Usage,
    UserSaid,
)
from gateway.providers.config import ProviderName, parse_model
from gateway.providers.models import open_model
from tests.fakes.chat_completions import chat_completions
from tests.fakes.model_script import Reply
from tests.gateway.providers.asking import LOOK_UP, SECRET, request, scene
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

Items = Sequence[Mapping[str, object]]

pytestmark = pytest.mark.anyio

STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
UNREACHED = {"provider": "openai", "name": "small", "base_url": "http://127.0.0.1:9/v1"}
WIRE = pytest.mark.parametrize("wire", [ProviderName.OPENAI, ProviderName.OPENAI_RESPONSES])


@requirement("design.model.wire")
@WIRE
async def test_a_reply_comes_whole_when_nobody_listens(wire: ProviderName) -> None:
    async with scene(wire) as at:
        at.fake.script.say("Good morning")
        reply = await at.model.complete(request(system="Be brief."))

    asked = at.fake.requests[0]
    assert reply.text == "Good morning"
    assert reply.finish is Finish.STOP
    assert reply.usage == Usage(input_tokens=11, output_tokens=7)
    assert reply.model == f"{wire.value}:m"
    assert asked.body["stream"] is False
    assert asked.headers["authorization"] == f"Bearer {SECRET}"


@requirement("design.model.wire")
@WIRE
async def test_a_listener_hears_the_text_as_it_grows(wire: ProviderName) -> None:
    heard: list[str] = []
    async with scene(wire) as at:
        at.fake.script.say("Good morning", piece=5)
        reply = await at.model.complete(request(), on_text=heard.append)

    assert heard == ["Good ", "morni", "ng"]
    assert (reply.text, reply.finish) == ("Good morning", Finish.STOP)
    assert reply.usage == Usage(input_tokens=11, output_tokens=7)
    assert at.fake.requests[0].body["stream"] is True


@requirement("design.model.wire")
@WIRE
@STREAMED
async def test_calls_come_back_with_canonical_arguments(
    wire: ProviderName, *, streamed: bool
) -> None:
    async with scene(wire) as at:
        at.fake.script.call("look_up", '{"day": "2026-01-01",  "a": 1.0}', text="One moment")
        reply = await at.ask(streamed=streamed)

    (call,) = reply.calls
    assert (call.name, call.arguments) == ("look_up", '{"a":1.0,"day":"2026-01-01"}')
    assert call.problem == ""
    assert (reply.text, reply.finish) == ("One moment", Finish.TOOLS)


@requirement("fault.f35")
@WIRE
@STREAMED
@pytest.mark.parametrize(
    "raw", ['{"day": "2026', "[1]", '"text"', '{"a":1,"a":2}', '{"a":NaN}'], ids=range(5)
)
async def test_arguments_that_are_no_object_are_kept_as_the_problem(
    wire: ProviderName, raw: str, *, streamed: bool
) -> None:
    async with scene(wire) as at:
        at.fake.script.call("look_up", raw)
        reply = await at.ask(streamed=streamed)

    (call,) = reply.calls
    assert call.arguments == "{}"
    assert raw in call.problem


async def test_arguments_left_out_are_an_empty_object() -> None:
    async with scene() as at:
        at.fake.script.call("look_up", "")
        reply = await at.ask(streamed=True)

    assert (reply.calls[0].arguments, reply.calls[0].problem) == ("{}", "")


@requirement("fault.f35")
@WIRE
@STREAMED
async def test_an_empty_answer_is_passed_on_as_empty(wire: ProviderName, *, streamed: bool) -> None:
    async with scene(wire) as at:
        at.fake.script.fail("empty")
        reply = await at.ask(streamed=streamed)

    assert (reply.text, reply.calls, reply.finish) == ("", (), Finish.STOP)


@WIRE
@STREAMED
async def test_an_answer_cut_at_the_limit_says_so(wire: ProviderName, *, streamed: bool) -> None:
    async with scene(wire) as at:
        at.fake.script.say("a long ans", finish="length")
        reply = await at.ask(streamed=streamed)

    assert (reply.text, reply.finish) == ("a long ans", Finish.LENGTH)


async def test_a_limit_used_up_before_the_first_word_is_an_explicit_failure() -> None:
    async with scene() as at:
        at.fake.script.say("", finish="length")
        with pytest.raises(ModelRejected, match="max_tokens"):
            await at.ask(streamed=True)


async def test_filtered_text_is_never_taken_for_an_answer() -> None:
    async with scene() as at:
        at.fake.script.say("half of a forbid", finish="content_filter")
        with pytest.raises(ModelRejected, match="content filter"):
            await at.ask(streamed=True)


HISTORY = (
    UserSaid(text="first"),
    UserSaid(text="second"),
    AssistantSaid(
        text="looking",
        calls=(FunctionCall(id="c1", name="look_up", arguments=canonical({"day": "today"})),),
    ),
    FunctionAnswer(id="c1", name="look_up", text="sunny"),
    AssistantSaid(text="", calls=(FunctionCall(id="c2", name="look_up", arguments=canonical({})),)),
    FunctionAnswer(id="c2", name="look_up", text="no such day", failed=True),
    UserSaid(text="never mind"),
    AssistantSaid(text="done"),
    UserSaid(text="thanks"),
)


SHOWN = Picture(media_type="image/png", data=b"\x89PNG")
WITH_PICTURES = (
    UserSaid(text="what is it?", pictures=(SHOWN,)),
    AssistantSaid(
        text="",
        calls=tuple(
            FunctionCall(id=name, name="look_up", arguments=canonical({})) for name in ("c1", "c2")
        ),
    ),
    FunctionAnswer(id="c1", name="look_up", text="one", pictures=(SHOWN,)),
    FunctionAnswer(id="c2", name="look_up", text="two"),
)


async def test_pictures_reach_a_chat_service_behind_the_answers_they_came_with() -> None:
    async with scene() as at:
        await at.ask(request(*WITH_PICTURES), streamed=False)

    messages = cast("Items", at.fake.requests[0].body["messages"])
    assert [item["role"] for item in messages] == ["user", "assistant", "tool", "tool", "user"]
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}
    assert messages[0]["content"] == [{"type": "text", "text": "what is it?"}, picture]
    assert messages[4]["content"] == [{"type": "text", "text": "(shown by look_up:)"}, picture]


async def test_a_model_that_takes_no_pictures_is_asked_again_without_them() -> None:
    async with scene() as at:
        at.fake.script.fail("rejected")
        at.fake.script.say("I see nothing, but I read its name")
        reply = await at.ask(request(*WITH_PICTURES), streamed=True)

    assert reply.text.startswith("I see nothing")
    assert "image_url" in json.dumps(at.fake.requests[0].body)
    assert "image_url" not in json.dumps(at.fake.requests[1].body)


async def test_a_request_without_pictures_that_is_refused_is_not_repeated() -> None:
    async with scene() as at:
        at.fake.script.fail("rejected")
        with pytest.raises(ModelRejected):
            await at.ask(streamed=False)

    assert len(at.fake.requests) == 1


@requirement("design.model.wire")
async def test_history_and_functions_reach_a_chat_service_unchanged() -> None:
    async with scene() as at:
        await at.ask(request(*HISTORY, system="Be brief."), streamed=False)

    body = at.fake.requests[0].body
    messages = cast("Items", body["messages"])
    assert [message["role"] for message in messages] == (
        [
            "system",
            "user",
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "user",
            "assistant",
            "user",
        ]
    )
    assert messages[3] == {
        "role": "assistant",
        "content": "looking",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "look_up", "arguments": '{"day":"today"}'},
            }
        ],
    }
    assert messages[4] == {"role": "tool", "tool_call_id": "c1", "content": "sunny"}
    assert "no such day" in str(messages[6]["content"])
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "look_up",
                "description": LOOK_UP.description,
                "parameters": LOOK_UP.parameters,
            },
        }
    ]


@requirement("design.model.wire")
async def test_history_and_functions_reach_the_responses_api() -> None:
    async with scene(ProviderName.OPENAI_RESPONSES) as at:
        await at.ask(request(*HISTORY, system="Be brief."), streamed=False)

    body = at.fake.requests[0].body
    items = cast("Items", body["input"])
    kinds = [item.get("type", item.get("role")) for item in items]
    assert kinds.count("function_call") == kinds.count("function_call_output") == 2
    assert body["instructions"] == "Be brief."
    assert body["store"] is False
    assert cast("Items", body["tools"])[0]["parameters"] == (LOOK_UP.parameters)


@requirement("model.config")
async def test_limits_and_temperature_are_sent() -> None:
    async with scene(max_tokens=100, temperature=0.5) as at:
        await at.ask(streamed=False)
        await at.ask(ModelRequest(system="", history=HISTORY[:1], max_tokens=7), streamed=False)

    first, second = (asked.body for asked in at.fake.requests)
    assert (first["max_tokens"], first["temperature"]) == (100, 0.5)
    assert second["max_tokens"] == 7
    assert "tools" not in second


@requirement("model.config")
async def test_any_compatible_service_works_without_a_key() -> None:
    async with chat_completions() as fake:
        config = parse_model({"provider": "openai", "name": "qwen3:4b", "base_url": fake.url})
        async with open_model(config) as model:
            reply = await model.complete(request())

    assert reply.model == "openai:qwen3:4b"
    assert fake.requests[0].body["model"] == "qwen3:4b"
    assert fake.requests[0].path == "/v1/chat/completions"


async def test_a_request_may_name_another_model_of_the_same_service() -> None:
    async with scene() as at:
        replies = [
            await at.ask(request(model=name), streamed=False)
            for name in ("big", "openai:big", "openai/big", "m", "openai:m")
        ]

    assert [asked.body["model"] for asked in at.fake.requests] == ["big"] * 3 + ["m"] * 2
    assert {reply.model for reply in replies[:3]} == {"openai:big"}


@requirement("sampling.allowed_models")
@pytest.mark.parametrize("allowed", ["big", "openai:big", "openai/big"])
async def test_a_request_may_say_which_models_may_answer_in_all_three_spellings(
    allowed: str,
) -> None:
    async with scene(fallbacks=[UNREACHED]) as at:
        asked = dataclasses.replace(request(model="big"), allowed_models=(allowed,))
        reply = await at.ask(asked, streamed=False)
        with pytest.raises(ModelRejected, match="openai:m: it is not among the models allowed"):
            await at.ask(dataclasses.replace(asked, model=""), streamed=False)

    assert reply.model == "openai:big"
    assert [asked.body["model"] for asked in at.fake.requests] == ["big"]


@requirement("sampling.allowed_models")
async def test_no_fallback_answers_that_the_request_does_not_allow() -> None:
    async with scene(fallbacks=[UNREACHED]) as at:
        at.fake.script.fail("rate_limited")
        with pytest.raises(ModelError):
            await at.ask(dataclasses.replace(request(), allowed_models=("m",)), streamed=False)

    assert [asked.body["model"] for asked in at.fake.requests] == ["m"]


async def test_a_model_of_a_provider_that_is_not_set_up_is_refused() -> None:
    async with scene() as at:
        with pytest.raises(ModelRejected, match="ANTHROPIC_API_KEY"):
            await at.ask(request(model="anthropic:claude-x"), streamed=False)

    assert at.fake.requests == []


@requirement("model.config")
async def test_the_next_model_answers_when_the_first_does_not() -> None:
    async with chat_completions() as first, chat_completions() as second:
        first.script.fail("unauthorized")
        section = {"provider": "openai", "name": "a", "base_url": first.url, "api_key": "k"}
        spare = {"provider": "openai", "name": "b", "base_url": second.url, "api_key": "k2"}
        async with open_model(parse_model({**section, "fallbacks": [spare]})) as model:
            replies = [await model.complete(request()) for _ in range(2)]

    assert [reply.model for reply in replies] == ["openai:b", "openai:a"]
    assert second.requests[0].headers["authorization"] == "Bearer k2"


async def test_requests_run_at_the_same_time_over_one_client() -> None:
    async with scene() as at:
        at.fake.script.queue.extend([Reply(text=str(n)) for n in range(4)])
        replies = await asyncio.gather(*(at.ask(streamed=n % 2 == 0) for n in range(4)))

    assert sorted(reply.text for reply in replies) == ["0", "1", "2", "3"]


async def test_a_cancelled_request_leaves_nothing_behind() -> None:
    async with scene() as at:
        at.fake.script.fail("slow")
        waiting = asyncio.create_task(at.ask(streamed=True))
        await eventually_async(lambda: bool(at.fake.requests), what="the request")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        reply = await at.ask(streamed=True)

    assert reply.text == "You said: hello"


async def test_a_reason_to_end_that_nobody_knows_is_an_end_too() -> None:
    async with scene() as at:
        at.fake.script.say("All said.", finish="eos")
        reply = await at.ask(streamed=True)

    assert (reply.text, reply.finish) == ("All said.", Finish.STOP)


@requirement("store.any_text")
@WIRE
@STREAMED
async def test_unpaired_surrogates_anywhere_in_a_session_do_not_stop_it(
    wire: ProviderName, *, streamed: bool
) -> None:
    lost = "a\ud800b"
    call = FunctionCall(id="c1", name="look_up", arguments=canonical({"day": lost}))
    history = (
        UserSaid(text=lost),
        AssistantSaid(text=lost, calls=(call,)),
        FunctionAnswer(id="c1", name="look_up", text=lost),
        UserSaid(text="and \U0001f600"),
    )
    function = FunctionSpec(
        name="look_up", description=lost, parameters={"type": "object", "title": [lost]}
    )
    async with scene(wire) as at:
        at.fake.script.say("Fine")
        asked = ModelRequest(system=lost, history=history, functions=(function,), model="")
        reply = await at.ask(asked, streamed=streamed)
        body = json.dumps(at.fake.requests[0].body, ensure_ascii=False)

    assert reply.text == "Fine"
    assert "and \U0001f600" in body
    assert body.count("a\ufffdb") >= 5
