import asyncio
import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.domain.delivery import Delivery
from gateway.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelRejected,
    ModelUnauthorized,
    ModelUnavailable,
)
from gateway.domain.model import (
    Finish,
    FunctionAnswer,
    FunctionCall,
    ModelReply,
    ModelRequest,
    Usage,
)
from gateway.ports import Approver, Store
from gateway.providers.guided import Guided
from gateway.runtime.config import GatewayConfig, ToolSearchConfig
from gateway.runtime.runtime import RuntimeConfig
from gateway.runtime.turn import BROKE, CUT_NOTE, EMPTY_REPLY
from tests.fakes.clock import HastyClock
from tests.fakes.house import CountedStore, rows, running
from tests.fakes.loopback import Loopback
from tests.fakes.model import ScriptedModel, calls, calls_tool, says
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ADD = "mcp__demo__add"
STEPS = "SELECT n, kind, tool, state FROM step ORDER BY n"
ENDS = "SELECT state, error FROM turn ORDER BY id"


async def test_a_message_is_answered(tmp_path: Path) -> None:
    model = ScriptedModel([says("hello Anna")])

    async with running(tmp_path, model) as house:
        await house.say("hi")
        assert await house.replies(1) == ["hello Anna"]

    assert [item.text for item in model.requests[0].history] == ["hi"]


@requirement("turn.steps_recorded")
async def test_every_step_is_in_the_journal_before_and_after_it_happens(tmp_path: Path) -> None:
    seen: list[list[tuple[object, ...]]] = []

    async def run(arguments: CanonicalJson, approver: Approver) -> str:
        seen.append(rows(tmp_path / "state.db", STEPS))
        return "added"

    async def second(request: ModelRequest) -> ModelReply:
        seen.append(rows(tmp_path / "state.db", STEPS))
        return says("done")

    tools = FakeTools()
    tools.add(tool("add"), run)
    model = ScriptedModel([calls_tool(ADD, a=1), second])

    async with running(tmp_path, model, tools=tools) as house:
        await house.say("add")
        assert await house.replies(1) == ["done"]

    asked, ran = (1, "model", "", "ok"), (2, "tool", "add", "ok")
    assert seen == [[asked, (2, "tool", "add", "sent")], [asked, ran]]
    assert rows(tmp_path / "state.db", STEPS) == [asked, ran, (3, "model", "", "ok")]
    assert tools.ran == [("add", '{"a":1}')]
    assert model.requests[1].history[-1].text == "added"


async def test_a_text_turn_costs_no_journal_commit_and_a_call_two_besides_its_reply(
    tmp_path: Path,
) -> None:
    tools = FakeTools()
    tools.add(tool("add"))
    batch = [{"name": ADD, "arguments": {"n": n}} for n in range(2)]
    model = ScriptedModel(
        [says("plain"), calls_tool(ADD), says("done"), calls(("tool_call", {"calls": batch}))]
    )
    counted: list[CountedStore] = []

    def watch(store: Store) -> Store:
        counted.append(CountedStore(store))
        return cast("Store", counted[0])

    async with running(tmp_path, model, tools=tools, watch=watch) as house:
        journaled: list[int] = []
        for n in range(3):
            await house.say("hi")
            await house.replies(n + 1)
            journaled.append(counted[0].asked["record_steps"])

        assert counted[0].asked["commit_turn"] == 3

    assert journaled == [0, 3, 3 + 5]


@requirement("design.transactions.never_span_network")
async def test_no_transaction_is_open_while_a_model_a_tool_or_a_platform_is_asked(
    tmp_path: Path,
) -> None:
    looked: Counter[str] = Counter()

    def others_can_write(who: str) -> None:
        path = tmp_path / "state.db"
        # Held open across the call, a transaction would outlast the wait: this blocks the loop.
        with closing(sqlite3.connect(path, timeout=3, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        looked[who] += 1

    async def run(arguments: CanonicalJson, approver: Approver) -> str:
        others_can_write("tool")
        return "added"

    def sending(delivery: Delivery) -> None:
        others_can_write("platform")

    tools = FakeTools()
    tools.add(tool("add"), run)
    model = ScriptedModel([calls_tool(ADD), says("done")], before=lambda: others_can_write("model"))

    async with running(tmp_path, model, tools=tools, adapter=Loopback(on_send=sending)) as house:
        await house.say("add")
        await house.replies(1)

    assert looked == {"model": 2, "tool": 1, "platform": 1}


@requirement("model.bounded", "fault.f35")
async def test_a_model_that_never_stops_calling_ends_at_the_round_limit(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(tool("add"))
    model = ScriptedModel([calls_tool(ADD)] * 50)
    config = RuntimeConfig(gateway=GatewayConfig(max_rounds=4))

    async with running(tmp_path, model, tools=tools, config=config) as house:
        await house.say("loop")
        (reply,) = await house.replies(1)
        assert house.rows(ENDS) == [("failed", "max_rounds")]

    assert "4 rounds" in reply
    assert len(model.requests) == 4
    # What the last reply asked for is not run: nobody would see it.
    assert len(tools.ran) == 3


@requirement("model.bounded", "fault.f35")
async def test_a_turn_that_takes_too_long_ends_with_an_explicit_message(tmp_path: Path) -> None:
    async def hang(arguments: CanonicalJson, approver: Approver) -> str:
        await asyncio.Event().wait()
        return ""

    tools = FakeTools()
    tools.add(tool("add"), hang)
    model = ScriptedModel([calls_tool(ADD), says("next")])
    config = RuntimeConfig(gateway=GatewayConfig(turn_timeout=0.2))

    async with running(tmp_path, model, tools=tools, config=config) as house:
        await house.say("add")
        (reply,) = await house.replies(1)
        assert house.rows(STEPS)[1] == (2, "tool", "add", "unknown")
        assert house.rows(ENDS) == [("failed", "turn_timeout")]
        await house.say("and now?")
        assert (await house.replies(2))[1] == "next"

    assert "time limit of 0.2 seconds" in reply


@requirement("fault.f35")
async def test_an_empty_reply_is_asked_for_once_more_and_then_said(tmp_path: Path) -> None:
    model = ScriptedModel([says(""), says("better"), says(" \n"), says("")])

    async with running(tmp_path, model) as house:
        await house.say("one")
        assert await house.replies(1) == ["better"]
        await house.say("two")
        assert (await house.replies(2))[1] == EMPTY_REPLY
        assert house.rows("SELECT count(*) FROM usage") == [(4,)]


@requirement("fault.f35")
async def test_malformed_tool_arguments_are_told_to_the_model_and_nothing_runs(
    tmp_path: Path,
) -> None:
    tools = FakeTools()
    tools.add(tool("add"))
    broken = FunctionCall(
        id="c", name="tool_call", arguments=CanonicalJson("{}"), problem="line 1 column 2"
    )
    reply = ModelReply(text="", calls=(broken,), usage=Usage(), finish=Finish.TOOLS)
    model = ScriptedModel([reply, says("sorry")])

    async with running(tmp_path, model, tools=tools) as house:
        await house.say("add")
        assert await house.replies(1) == ["sorry"]

    answer = model.requests[1].history[-1]
    assert isinstance(answer, FunctionAnswer)
    assert answer.failed
    assert "line 1 column 2" in answer.text
    assert tools.ran == []


@requirement("model.errors", "fault.f35")
@pytest.mark.parametrize(
    "error",
    [
        ModelRejected("m", "no such model"),
        ModelUnauthorized("m", "wrong key"),
        ModelUnavailable("m", "the answer broke off"),
        ContextTooLong("m"),
    ],
)
async def test_a_model_that_cannot_answer_is_an_honest_message_never_a_part_of_an_answer(
    tmp_path: Path, error: ModelError
) -> None:
    model = ScriptedModel([error] * 10)

    async with running(tmp_path, model, clock=HastyClock()) as house:
        await house.say("hi")
        assert await house.replies(1) == [error.public_message]
        ((state, detail),) = house.rows(ENDS)
        assert state == "failed"
        assert str(error) in detail


async def test_a_cut_answer_says_that_it_is_cut(tmp_path: Path) -> None:
    model = ScriptedModel([says("half of it", finish=Finish.LENGTH)])

    async with running(tmp_path, model) as house:
        await house.say("hi")
        assert await house.replies(1) == ["half of it" + CUT_NOTE]


async def test_an_unexpected_error_ends_one_turn_with_one_sentence_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def explode(request: ModelRequest) -> ModelReply:
        raise RuntimeError("secret detail")

    model = ScriptedModel([explode, says("fine")])

    async with running(tmp_path, model) as house:
        await house.say("one")
        (reply,) = await house.replies(1)
        await house.say("two")
        assert (await house.replies(2))[1] == "fine"
        assert house.rows(ENDS) == [("failed", "RuntimeError"), ("done", None)]

    assert reply == "Something went wrong on our side; the log has the detail."
    assert "turn failed" in caplog.text


async def test_the_books_hold_every_reply_of_a_turn(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(tool("add"))
    model = ScriptedModel([calls_tool(ADD), says("done")])

    async with running(tmp_path, model, tools=tools) as house:
        await house.say("add")
        await house.replies(1)
        assert house.rows("SELECT purpose, model, input_tokens, output_tokens FROM usage") == [
            ("turn", "scripted:model", 10, 5),
            ("turn", "scripted:model", 10, 5),
        ]
        assert house.rows("SELECT input_tokens, output_tokens FROM session") == [(20, 10)]


@requirement("config.home.agent_log")
async def test_the_agent_log_has_a_line_for_each_model_and_tool_call(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(tool("add"))
    model = ScriptedModel([calls_tool(ADD), says("done")])

    async with running(tmp_path, model, tools=tools) as house:
        await house.say("add")
        await house.replies(1)
        lines = house.log.lines

    key = "agent:main:loop:dm:1"
    assert lines == [
        f"model {key} scripted:model tools",
        f"tool {key} demo add ok",
        f"model {key} scripted:model stop",
    ]


@requirement("tools.batch")
async def test_a_batch_runs_one_call_after_another_and_answers_them_together(
    tmp_path: Path,
) -> None:
    running_now = 0

    async def alone(arguments: CanonicalJson, approver: Approver) -> str:
        nonlocal running_now
        running_now += 1
        await asyncio.sleep(0)
        assert running_now == 1
        running_now -= 1
        return f"added {arguments}"

    tools = FakeTools()
    tools.add(tool("add"), alone)
    batch = [{"name": ADD, "arguments": {"n": n}} for n in range(3)]
    model = ScriptedModel([calls(("tool_call", {"calls": batch})), says("done")])

    async with running(tmp_path, model, tools=tools) as house:
        await house.say("add")
        await house.replies(1)

    assert [arguments for _, arguments in tools.ran] == ['{"n":0}', '{"n":1}', '{"n":2}']
    assert model.requests[1].history[-1].text.count('"state": "ok"') == 3


@requirement("tools.batch")
async def test_neighbours_of_a_batch_run_together_where_their_server_takes_that(
    tmp_path: Path,
) -> None:
    log: list[str] = []
    together = asyncio.Barrier(2)

    async def wide(arguments: CanonicalJson, approver: Approver) -> str:
        # Nobody passes until the other call of its group is under way too.
        await together.wait()
        log.append("wide")
        return "wide"

    async def narrow(arguments: CanonicalJson, approver: Approver) -> str:
        log.append("narrow starts")
        await asyncio.sleep(0)
        log.append("narrow ends")
        return "narrow"

    tools = FakeTools()
    tools.add(tool("wide", parallel=True), wide)
    tools.add(tool("narrow", server="other"), narrow)
    names = ["wide", "wide", "narrow", "narrow", "wide", "wide"]
    batch = [
        {"name": f"mcp__{'demo' if name == 'wide' else 'other'}__{name}", "arguments": {"n": n}}
        for n, name in enumerate(names)
    ]
    model = ScriptedModel([calls(("tool_call", {"calls": batch})), says("done")])

    async with running(tmp_path, model, tools=tools) as house:
        await house.say("go")
        assert await house.replies(1)

    narrow_twice = ["narrow starts", "narrow ends"] * 2
    assert log == ["wide", "wide", *narrow_twice, "wide", "wide"]
    answered = json.loads(model.requests[1].history[-1].text)
    assert [answer["name"].rpartition("__")[2] for answer in answered] == names


@requirement("tools.batch")
async def test_one_call_of_a_group_that_cannot_go_on_ends_the_others_and_the_turn(
    tmp_path: Path,
) -> None:
    ended: list[str] = []

    async def waits(arguments: CanonicalJson, approver: Approver) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")
        return ""

    async def explodes(arguments: CanonicalJson, approver: Approver) -> str:
        raise KeyError("a bug of the host")

    tools = FakeTools()
    tools.add(tool("waits", parallel=True), waits)
    tools.add(tool("explodes", parallel=True), explodes)
    batch = [
        {"name": f"mcp__demo__{name}", "arguments": {"n": 1}} for name in ("waits", "explodes")
    ]
    model = ScriptedModel([calls(("tool_call", {"calls": batch})), says("done")])

    async with running(tmp_path, model, tools=tools) as house:
        await house.say("go")
        (reply,) = await house.replies(1)

    assert reply == BROKE
    assert ended == ["waits"]


@requirement("tool_search.deferred")
async def test_the_model_gets_three_functions_for_all_tools_and_reaches_them_through_these(
    tmp_path: Path,
) -> None:
    tools = FakeTools(specs=[tool("add"), tool("list_notes", read_only=True)])
    model = ScriptedModel(
        [calls(("tool_search", {"queries": ["add"]})), calls_tool(ADD), says("done")]
    )

    async with running(tmp_path, model, tools=tools) as house:
        await house.say("add")
        await house.replies(1)

    offered = {spec.name for request in model.requests for spec in request.functions}
    assert offered == {"tool_search", "tool_describe", "tool_call"}
    assert ADD in model.requests[1].history[-1].text
    assert [name for name, _ in tools.ran] == ["add"]


@requirement("tool_search.disabled")
async def test_with_search_switched_off_the_model_calls_a_tool_by_its_own_function(
    tmp_path: Path,
) -> None:
    tools = FakeTools(specs=[tool("add")])
    model = ScriptedModel([calls((ADD, {"a": 1})), says("done")])
    config = RuntimeConfig(tool_search=ToolSearchConfig(enabled=False))

    async with running(tmp_path, model, tools=tools, config=config) as house:
        await house.say("add")
        await house.replies(1)

    assert [spec.name for spec in model.requests[0].functions] == [ADD]
    assert tools.ran == [("add", '{"a":1}')]


@requirement("guided.call")
async def test_call_runs_a_tool_directly_through_gate_and_journal(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(tool("add"), gated=True)
    model = ScriptedModel()

    async with running(tmp_path, model, tools=tools) as house:
        await house.give("call", 'add {"a": 1}')
        await house.press("Allow once")
        (reply,) = await house.replies(1)
        assert [row[1:] for row in house.rows(STEPS)] == [
            ("model", "", "ok"),
            ("tool", "add", "ok"),
            ("model", "", "ok"),
        ]

    assert reply == 'add ran with {"a":1}'
    assert model.requests == []


@requirement("guided.call")
async def test_call_without_arguments_asks_for_them_and_a_refusal_runs_nothing(
    tmp_path: Path,
) -> None:
    tools = FakeTools()
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    tools.add(tool("add", schema=schema))

    async with running(tmp_path, ScriptedModel(), tools=tools) as house:
        await house.give("call", "add")
        await house.press("Cancel")
        (reply,) = await house.replies(1)

    assert reply.startswith("add was not called:")
    assert tools.ran == []


async def test_what_a_person_picks_reaches_a_provider_that_asks_people(tmp_path: Path) -> None:
    asked = {"message": "Which?", "options": [{"value": ADD, "label": "Add"}]}
    model = ScriptedModel([calls(("ask_choice", asked)), says("thanks")], asks_person=True)

    async with running(tmp_path, model, tools=FakeTools(specs=[tool("add")])) as house:
        await house.say("add")
        await house.press("Add")
        await house.replies(1)

    assert model.requests[1].history[-1].text == f'{{"picked": "{ADD}", "reason": ""}}'


async def test_a_denied_call_does_not_run_and_the_model_is_told_why(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(tool("add"), gated=True)
    model = ScriptedModel([calls_tool(ADD), says("understood")])

    async with running(tmp_path, model, tools=tools) as house:
        await house.say("add")
        await house.press("Deny")
        await house.replies(1)
        assert house.rows(STEPS)[1] == (2, "tool", "add", "error")

    assert tools.ran == []
    assert "denied by" in model.requests[1].history[-1].text


async def test_guided_mode_leads_from_words_to_an_approved_call(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(tool("add"), gated=True)

    async with running(tmp_path, Guided(), tools=tools) as house:
        await house.say("add something")
        await house.adapter.until(lambda: len(house.adapter.cards()) == 1)
        (choice, *_) = json.loads(house.adapter.cards()[0].payload)["buttons"]
        await house.press(choice[0])
        await house.adapter.until(lambda: len(house.adapter.cards()) == 2)
        await house.press("Allow once")
        (reply,) = await house.replies(1)
        assert house.rows(ENDS) == [("done", None)]

    assert "add ran with {}" in reply
    assert tools.ran == [("add", "{}")]
