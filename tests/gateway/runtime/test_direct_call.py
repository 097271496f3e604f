import pytest

from gateway.domain.model import AssistantSaid, FunctionAnswer, ModelMessage, ModelRequest
from gateway.runtime.direct_call import USAGE, direct_call

pytestmark = pytest.mark.anyio


def request(*history: ModelMessage) -> ModelRequest:
    return ModelRequest(system="", history=history)


async def test_it_calls_the_tool_with_the_arguments_it_was_given() -> None:
    reply = await direct_call('add_note {"text": "x"}').complete(request())

    (call,) = reply.calls
    assert call.name == "tool_call"
    assert call.arguments == '{"calls":[{"arguments":{"text":"x"},"name":"add_note"}]}'


async def test_without_arguments_it_asks_for_them_first() -> None:
    model = direct_call("add_note")
    first = await model.complete(request())
    filled = FunctionAnswer(
        id="1", name="ask_arguments", text='{"action":"accept","arguments":{"text":"x"}}'
    )
    second = await model.complete(request(AssistantSaid(text=""), filled))

    assert [call.name for call in first.calls] == ["ask_arguments"]
    assert [call.name for call in second.calls] == ["tool_call"]


async def test_the_result_is_the_reply() -> None:
    answer = FunctionAnswer(id="1", name="tool_call", text="done")

    assert (await direct_call("x {}").complete(request(answer))).text == "done"


async def test_a_form_that_was_not_sent_calls_nothing() -> None:
    answer = FunctionAnswer(
        id="1", name="ask_arguments", text='{"action":"decline","reason":"declined by Anna"}'
    )
    reply = await direct_call("add_note").complete(request(answer))

    assert (reply.calls, reply.text) == ((), "add_note was not called: declined by Anna.")


@pytest.mark.parametrize("argument", ["", "add_note {", "add_note [1]", 'add_note {"a":1,"a":2}'])
async def test_what_cannot_be_understood_is_answered_with_the_usage(argument: str) -> None:
    reply = await direct_call(argument).complete(request())

    assert reply.calls == ()
    assert USAGE in reply.text
