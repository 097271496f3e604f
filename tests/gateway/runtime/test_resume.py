import asyncio
from pathlib import Path

import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.domain.model import FunctionAnswer, ModelReply, ModelRequest
from gateway.ports import Approver
from gateway.runtime.turn import MAX_ATTEMPTS, TOO_MANY_ATTEMPTS
from tests.fakes.house import running
from tests.fakes.loopback import Loopback
from tests.fakes.model import ScriptedModel, calls, calls_tool, says
from tests.fakes.tools import FakeTools, tool

pytestmark = pytest.mark.anyio

ADD = "mcp__demo__add"
LIST = "mcp__demo__list"


class Hanging:
    """A tool that never answers in its first life."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.hangs = True

    async def __call__(self, arguments: CanonicalJson, approver: Approver) -> str:
        self.started.set()
        if self.hangs:
            await asyncio.Event().wait()
        return "answered"


async def test_a_crash_during_a_model_call_leads_to_one_answer(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def hang(request: ModelRequest) -> ModelReply:
        asked.set()
        await asyncio.Event().wait()
        return says("never")

    async with running(tmp_path, ScriptedModel([hang]), crash=True) as house:
        await house.say("hi")
        await asked.wait()

    async with running(tmp_path, ScriptedModel([says("hello")])) as house:
        assert await house.replies(1) == ["hello"]
        assert house.rows("SELECT count(*) FROM message WHERE role = 'assistant'") == [(1,)]
        assert house.rows("SELECT state, attempts FROM turn") == [("done", 2)]


async def test_a_write_that_was_out_is_not_repeated_and_the_model_is_told(tmp_path: Path) -> None:
    tools, run = FakeTools(), Hanging()
    tools.add(tool("add"), run)
    async with running(
        tmp_path, ScriptedModel([calls_tool(ADD, a=1)]), tools=tools, crash=True
    ) as house:
        await house.say("add")
        await run.started.wait()

    run.hangs = False
    model = ScriptedModel([says("I do not know")])
    async with running(tmp_path, model, tools=tools) as house:
        assert await house.replies(1) == ["I do not know"]
        assert house.rows("SELECT state FROM step WHERE kind = 'tool'") == [("unknown",)]

    answer = model.requests[0].history[-1]
    assert isinstance(answer, FunctionAnswer)
    assert "outcome is unknown" in answer.text
    assert len(tools.ran) == 1


async def test_a_read_that_was_out_is_simply_made_again(tmp_path: Path) -> None:
    tools, run = FakeTools(), Hanging()
    tools.add(tool("list", read_only=True), run)
    async with running(
        tmp_path, ScriptedModel([calls_tool(LIST)]), tools=tools, crash=True
    ) as house:
        await house.say("list")
        await run.started.wait()

    run.hangs = False
    model = ScriptedModel([says("done")])
    async with running(tmp_path, model, tools=tools) as house:
        assert await house.replies(1) == ["done"]

    assert model.requests[0].history[-1].text == "answered"
    assert len(tools.ran) == 2


async def test_finished_steps_are_kept_and_the_batch_goes_on_where_it_was(tmp_path: Path) -> None:
    tools, run = FakeTools(), Hanging()
    tools.add(tool("first"))
    tools.add(tool("list", read_only=True), run)
    tools.add(tool("add"))
    names = ["mcp__demo__first", LIST, ADD]
    batch = calls(("tool_call", {"calls": [{"name": name} for name in names]}))
    async with running(tmp_path, ScriptedModel([batch]), tools=tools, crash=True) as house:
        await house.say("go")
        await run.started.wait()

    run.hangs = False
    model = ScriptedModel([says("done")])
    async with running(tmp_path, model, tools=tools) as house:
        assert await house.replies(1) == ["done"]

    assert [name for name, _ in tools.ran] == ["first", "list", "list", "add"]
    assert len(model.requests) == 1
    assert model.requests[0].history[-1].text.count('"state": "ok"') == 3


async def test_a_pending_approval_stays_answerable_and_its_call_runs_once(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(tool("add"), gated=True)
    adapter = Loopback()
    async with running(
        tmp_path, ScriptedModel([calls_tool(ADD, a=1)]), tools=tools, adapter=adapter, crash=True
    ) as house:
        await house.say("add")
        await adapter.until(lambda: bool(adapter.cards()))

    model = ScriptedModel([says("done")])
    async with running(tmp_path, model, tools=tools, adapter=adapter, first=10) as house:
        await house.press("Allow once")
        assert await house.replies(1) == ["done"]
        assert house.rows("SELECT count(*) FROM question") == [(1,)]

    assert len(adapter.cards()) == 1
    assert tools.ran == [("add", '{"a":1}')]


async def test_a_turn_that_keeps_ending_the_process_is_given_up(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def hang(request: ModelRequest) -> ModelReply:
        asked.set()
        await asyncio.Event().wait()
        return says("never")

    for n in range(MAX_ATTEMPTS):
        asked.clear()
        async with running(tmp_path, ScriptedModel([hang]), crash=True) as house:
            if n == 0:
                await house.say("hi")
            await asked.wait()

    async with running(tmp_path, ScriptedModel()) as house:
        assert await house.replies(1) == [TOO_MANY_ATTEMPTS]
