"""Servers that ask our model: both eras, inside their calls, within the limits of their entry."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.canonical import canonical
from gateway.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelUnauthorized,
)
from gateway.domain.model import Finish, FunctionCall, ModelReply, ModelRequest, Usage
from gateway.ports import Approval
from mcp_host.sampler import Sampler, SamplingCall
from mcp_host.sampling import SamplingRefused
from mcp_host.server_config import SamplingConfig, ServerConfig
from tests.fakes.model import ScriptedModel, says
from tests.mcp_host.hosting import Person, arguments, legacy, lines_of, modern, running
from tests.mcp_host.test_sampling import asking, outcome, use, user
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

DENIED = Approval(allowed=False, reason="denied by Anna")
ERAS = pytest.mark.parametrize(
    ("entry", "tool"), [(legacy, "sample"), (modern, "samples")], ids=["legacy", "modern"]
)


def sampler(
    models: ScriptedModel | None, *, clock: ManualClock | None = None, **config: object
) -> Sampler:
    return Sampler(
        "s",
        SamplingConfig.model_validate(config),
        models=models,
        asks_first=False,
        clock=clock or ManualClock(),
    )


def calls_a_tool() -> ModelReply:
    call = FunctionCall(id="c", name="look_up", arguments=canonical({}))
    return ModelReply(text="", calls=(call,), usage=Usage(), finish=Finish.TOOLS)


@requirement("case.sa2")
@ERAS
async def test_a_tool_that_asks_the_model_inside_its_call_gets_the_answer(
    entry: Any, tool: str
) -> None:
    models = ScriptedModel([says("42")])
    async with running(entry(), models=models) as host:
        async with asyncio.timeout(20):
            result = await host.call(tool, "how many?")

    answer = json.loads(result.text)
    assert answer["content"] == {"type": "text", "text": "42"}
    assert (answer["model"], answer["stopReason"]) == ("scripted:model", "endTurn")
    assert [request.history[-1].text for request in models.requests] == ["how many?"]


@requirement("case.sa2")
async def test_while_the_model_thinks_other_calls_of_the_server_go_on() -> None:
    thinks, may_answer = asyncio.Event(), asyncio.Event()

    async def think(_: ModelRequest) -> ModelReply:
        thinks.set()
        await may_answer.wait()
        return says("done")

    async with running(legacy(), models=ScriptedModel([think])) as host:
        sampling = asyncio.create_task(host.call("sample", "slowly"))
        await thinks.wait()
        echo = await host.call("echo", "meanwhile")
        may_answer.set()
        result = await sampling

    assert echo.text == "meanwhile"
    assert json.loads(result.text)["content"]["text"] == "done"


@requirement("case.sa2")
async def test_two_calls_may_both_ask_the_model_of_a_trusted_server() -> None:
    go = asyncio.Event()

    async def both(_: ModelRequest) -> ModelReply:
        await go.wait()
        return says("done")

    models = ScriptedModel([both, both])
    async with running(legacy(), models=models) as host:
        calls = [asyncio.create_task(host.call("sample", "x")) for _ in range(2)]
        await eventually_async(lambda: len(models.requests) == 2)
        go.set()
        results = [await call for call in calls]

    assert [json.loads(result.text)["role"] for result in results] == ["assistant"] * 2


async def test_a_call_that_ends_stops_what_it_still_wants_of_the_model(tmp_path: Path) -> None:
    go = tmp_path / "go"
    stopped = asyncio.Event()

    async def never(_: ModelRequest) -> ModelReply:
        go.touch()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError

    async with running(legacy(), models=ScriptedModel([never])) as host:
        result = await host.call("sample_and_answer", str(go))
        await stopped.wait()

    assert result.text == "answered"


@requirement("sampling.capability")
@pytest.mark.parametrize("make", [legacy, modern])
async def test_the_capability_is_advertised_only_when_a_model_can_answer(
    make: Any, tmp_path: Path
) -> None:
    async def advertised(name: str, models: ScriptedModel | None, **config: object) -> object:
        entry: ServerConfig = make("--capabilities", tmp_path / name, sampling=config)
        async with running(entry, models=models):
            return json.loads(lines_of(tmp_path / name)[0]).get("sampling")

    assert await advertised("on", ScriptedModel()) == {"tools": {}}
    assert await advertised("bare", ScriptedModel(), max_tool_rounds=0) == {}
    assert await advertised("off", ScriptedModel(), enabled=False) is None
    assert await advertised("no model", None) is None


@requirement("sampling.capability")
@ERAS
async def test_a_server_that_asks_all_the_same_gets_an_error_and_no_model_is_asked(
    entry: Any, tool: str
) -> None:
    models = ScriptedModel()
    async with running(entry(sampling={"enabled": False}), models=models) as host:
        result = await host.call(tool, "x")

    assert "not supported" in result.text or "not offered" in result.text
    assert models.requests == []


@requirement("sampling.limits")
async def test_the_limit_of_tokens_is_the_smaller_one_of_both_sides() -> None:
    models = ScriptedModel()
    one = sampler(models, max_tokens_cap=50)

    await one.answer(asking() | {"maxTokens": 20})
    await one.answer(asking() | {"maxTokens": 4_000})
    await one.answer(asking() | {"maxTokens": None})

    assert [request.max_tokens for request in models.requests] == [20, 50, 50]


@requirement("sampling.limits")
async def test_a_model_that_takes_too_long_is_an_error_for_the_server() -> None:
    async def never(_: ModelRequest) -> ModelReply:
        await asyncio.Event().wait()
        raise AssertionError

    one = sampler(ScriptedModel([never]), timeout=0.05)
    with pytest.raises(SamplingRefused, match=r"no answer in 0\.05 s"):
        await one.answer(asking())

    assert (one.count.requests, one.count.errors) == (1, 1)


@requirement("sampling.limits")
async def test_requests_are_limited_in_any_sixty_seconds() -> None:
    models, clock = ScriptedModel(), ManualClock()
    one = sampler(models, clock=clock, max_rpm=3)
    for _ in range(3):
        await one.answer(asking())
        clock.advance(20)
    # The first one left the window just now; a window that begins anew would take three.
    await one.answer(asking())
    with pytest.raises(SamplingRefused, match="more than 3 requests a minute; wait 20 s"):
        await one.answer(asking())
    clock.advance(20)
    await one.answer(asking())

    assert len(models.requests) == 5
    assert (one.count.requests, one.count.answered, one.count.refused) == (6, 5, 1)


@requirement("sampling.limits")
async def test_rounds_of_tools_are_limited_inside_a_call() -> None:
    models = ScriptedModel([calls_a_tool(), calls_a_tool(), calls_a_tool()])
    one, call = sampler(models, max_tool_rounds=2), SamplingCall()
    request = asking(tools=[{"name": "look_up", "inputSchema": {"type": "object"}}])
    first = await one.answer(request, call)
    await one.answer(request, call)
    with pytest.raises(SamplingRefused, match="more than 2 rounds of tools"):
        await one.answer(request, call)

    assert first["stopReason"] == "toolUse"


@requirement("sampling.limits")
async def test_rounds_of_tools_that_a_conversation_shows_count_too() -> None:
    models = ScriptedModel()
    long = asking(user("x"), *[use(), outcome()] * 3)
    with pytest.raises(SamplingRefused, match="more than 2 rounds of tools"):
        await sampler(models, max_tool_rounds=2).answer(long)
    tools = [{"name": "look_up"}]
    with pytest.raises(SamplingRefused, match="tools are not offered"):
        await sampler(models, max_tool_rounds=0).answer(asking(tools=tools))

    assert models.requests == []
    assert (await sampler(models, max_tool_rounds=3).answer(long))["stopReason"] == "endTurn"


@requirement("sampling.limits")
async def test_what_a_server_used_is_counted_and_told_at_the_level_of_its_entry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="mcp_host.sampler")
    usage = Usage(input_tokens=7, output_tokens=3)
    answer = ModelReply(text="hush", calls=(), usage=usage, finish=Finish.STOP, model="openai:m")
    one = sampler(ScriptedModel([answer, answer]), log_level="warning")
    await one.answer(asking(user("secret words")))
    await one.answer(asking())

    assert (one.count.input_tokens, one.count.output_tokens) == (14, 6)
    told = [record for record in caplog.records if "openai:m" in record.message]
    assert {record.levelname for record in told} == {"WARNING"}
    assert "7 tokens in, 3 out" in told[0].message
    assert "hush" not in caplog.text
    assert "secret words" not in caplog.text


@requirement("sampling.allowed_models")
async def test_the_entry_says_which_model_and_which_ones_may_answer() -> None:
    models = ScriptedModel()
    hints = asking(modelPreferences={"hints": [{"name": "openai/big"}, {"name": "small"}]})
    await sampler(models, model="anthropic:m", allowed_models=["m"]).answer(hints)
    await sampler(models).answer(hints)
    await sampler(models).answer(asking())

    assert [(request.model, request.allowed_models) for request in models.requests] == [
        ("anthropic:m", ("m",)),
        ("openai/big", ()),
        ("", ()),
    ]


@requirement("sampling.allowed_models")
async def test_a_hint_at_a_model_that_may_not_answer_is_passed_over() -> None:
    refuses = ModelRejected("openai:big", "it is not among the models allowed here")
    hints = asking(modelPreferences={"hints": [{"name": "big"}, {"name": "small"}]})
    models = ScriptedModel([refuses, refuses, says("ours")])
    answer = await sampler(models, allowed_models=["openai:m"]).answer(hints)

    assert [request.model for request in models.requests] == ["big", "small", ""]
    assert answer["content"] == {"type": "text", "text": "ours"}


@requirement("sampling.never_credentials")
@ERAS
@pytest.mark.parametrize(
    "error",
    [
        ModelUnauthorized("openai:m", "Incorrect API key provided: sk-secret"),
        ModelRateLimited("openai:m", 5),
        ContextTooLong("openai:m"),
        ModelRejected("openai:m", "400 with Authorization: Bearer sk-secret"),
        RuntimeError("api_key=sk-secret"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_a_provider_says_of_a_failure_never_reaches_the_server(
    entry: Any, tool: str, error: Exception, tmp_path: Path
) -> None:
    async def fail(_: ModelRequest) -> ModelReply:
        raise error

    log = tmp_path / "log"
    models = ScriptedModel([fail])
    async with running(entry("--log", log), models=models) as host:
        result = await host.call(tool, "x")

    assert "sk-secret" not in result.text
    assert "openai:m" not in result.text
    assert "sk-secret" not in log.read_text()
    if not isinstance(error, ModelError):
        assert "an error in the gateway itself" in result.text


@requirement("threat.s29")
@ERAS
async def test_an_untrusted_server_asks_a_person_first_and_once_in_a_call(
    entry: Any, tool: str
) -> None:
    person = Person(arguments("how many?"))
    async with running(entry(trust="untrusted"), models=ScriptedModel()) as host:
        result = await host.call(tool, "how many?", person=person)

    assert json.loads(result.text)["role"] == "assistant"
    assert [(one.server, one.tool, one.excerpt) for one in person.samples] == [
        ("s", tool, "how many?")
    ]


@requirement("threat.s29")
async def test_one_answer_of_a_person_covers_all_requests_of_a_call() -> None:
    models, person = ScriptedModel(), Person(arguments("3"))
    async with running(legacy(trust="untrusted"), models=models) as host:
        await host.call("sample_often", "3", person=person)
        await host.call("sample_often", "3", person=person)

    assert len(models.requests) == 6
    assert len(person.samples) == 2


@requirement("threat.s29")
@ERAS
async def test_without_a_yes_no_model_is_asked_and_the_reason_is_told(
    entry: Any, tool: str
) -> None:
    models = ScriptedModel()
    async with running(entry(trust="untrusted"), models=models) as host:
        result = await host.call(tool, "x", person=Person(arguments("x"), sampling=DENIED))

    assert models.requests == []
    assert "it was not allowed: denied by Anna" in result.text


@requirement("threat.s29")
async def test_where_it_is_unclear_whom_to_ask_an_untrusted_server_is_refused(
    tmp_path: Path,
) -> None:
    go, models = tmp_path / "go", ScriptedModel()
    async with running(legacy(trust="untrusted"), models=models) as host:
        bystander, asker = Person(arguments(str(go))), Person(arguments(""))
        other = asyncio.create_task(host.call("hold", person=bystander))
        await eventually_async(lambda: bystander.starts == [None])
        result = await host.call("sample", "x", person=asker)
        go.touch()
        held = await other

    for text in (result.text, held.text):
        assert "not clear in which conversation to ask" in text
    assert bystander.samples == asker.samples == []
    assert models.requests == []


@requirement("threat.s29")
async def test_the_time_limits_stand_still_while_a_person_decides() -> None:
    person = Person(arguments("x"))
    person.decides.clear()
    entry = legacy(trust="untrusted", timeout=0.5, sampling={"timeout": 0.5})
    async with running(entry, models=ScriptedModel()) as host:
        call = asyncio.create_task(host.call("sample", person=person))
        await person.asked.wait()
        await asyncio.sleep(0.8)
        person.decides.set()
        result = await call

    assert json.loads(result.text)["role"] == "assistant"
