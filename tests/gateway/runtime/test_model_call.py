import dataclasses

import pytest

from gateway.domain.errors import (
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelUnauthorized,
    ModelUnavailable,
)
from gateway.domain.model import ModelReply, ModelRequest
from gateway.runtime.model_call import LONGEST_WAIT_SECONDS, MAX_TRIES, ModelCaller
from tests.fakes.agent_log import ListedLog
from tests.fakes.clock import HastyClock
from tests.fakes.model import ScriptedModel, calls, says
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(system="", history=())


@requirement("model.errors")
async def test_a_rate_limited_model_is_asked_again_after_the_time_it_named() -> None:
    clock = HastyClock()
    model = ScriptedModel([ModelRateLimited("m", 7), says("hello")])

    timed = await ModelCaller(clock=clock, log=ListedLog()).ask(model, REQUEST, conversation="k")

    assert timed.reply.text == "hello"
    assert clock.slept == [7]


@requirement("model.errors", "fault.f35")
async def test_an_unavailable_model_is_asked_a_few_times_with_growing_pauses() -> None:
    clock = HastyClock()
    model = ScriptedModel([ModelUnavailable("m", "overloaded")] * (MAX_TRIES + 5))

    with pytest.raises(ModelUnavailable):
        await ModelCaller(clock=clock, log=ListedLog()).ask(model, REQUEST, conversation="k")

    assert len(model.requests) == MAX_TRIES
    assert clock.slept == [1, 2, 4]


@pytest.mark.parametrize(
    "error",
    [
        ModelRejected("m", "bad request"),
        ModelUnauthorized("m", "wrong key"),
        ModelRateLimited("m", LONGEST_WAIT_SECONDS + 1),
    ],
)
async def test_an_error_that_waiting_does_not_mend_is_raised_at_once(error: ModelError) -> None:
    clock = HastyClock()
    model = ScriptedModel([error])

    with pytest.raises(type(error)):
        await ModelCaller(clock=clock, log=ListedLog()).ask(model, REQUEST, conversation="k")

    assert clock.slept == []


async def test_calls_with_one_id_get_ids_of_their_own_and_the_reply_names_its_model() -> None:
    asked = calls(("a", {}), ("b", {}))
    same = [item.id for item in asked.calls]
    model = ScriptedModel([asked, _with_ids(asked, ""), _with_ids(asked, "x")])
    caller = ModelCaller(clock=HastyClock(), log=ListedLog())

    ids = [
        [call.id for call in (await caller.ask(model, REQUEST, conversation="k")).reply.calls]
        for _ in range(3)
    ]

    assert ids[0] == same
    assert len(set(ids[1])) == len(set(ids[2])) == 2
    assert all(ids[1])


@requirement("config.home.agent_log")
async def test_the_agent_log_has_one_line_for_every_request() -> None:
    log = ListedLog()
    model = ScriptedModel([ModelUnavailable("m", "overloaded"), says("hello")])

    await ModelCaller(clock=HastyClock(), log=log).ask(model, REQUEST, conversation="k")

    assert log.lines == ["model k m error overloaded", "model k scripted:model stop"]


def _with_ids(reply: ModelReply, identifier: str) -> ModelReply:
    same = tuple(dataclasses.replace(call, id=identifier) for call in reply.calls)
    return dataclasses.replace(reply, calls=same)
