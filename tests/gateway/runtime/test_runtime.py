import asyncio
from pathlib import Path

import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.domain.errors import AdapterUnauthorized
from gateway.domain.form import FieldKind, Form, FormField
from gateway.domain.message import InboundEvent
from gateway.ports import Approver, FormRequest
from gateway.runtime.supervision import keep_running
from tests.fakes.clock import HastyClock
from tests.fakes.house import running
from tests.fakes.loopback import PLATFORM, Loopback
from tests.fakes.model import ScriptedModel, calls_tool, says
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ADD = "mcp__demo__add"
QUESTIONS = "SELECT kind, state, reason FROM question ORDER BY created_at"


async def test_an_adapter_that_fails_is_started_again_with_growing_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    adapter = Loopback(failures=[RuntimeError("lost"), AdapterUnauthorized(PLATFORM, "revoked")])
    adapter.ends.set()
    clock = HastyClock()

    await keep_running(adapter, Nobody(), clock=clock)

    assert adapter.connected.is_set()
    assert clock.slept == [1, 2]
    assert "adapter loop failed" in caplog.text


async def test_one_platform_that_never_connects_holds_up_no_other(tmp_path: Path) -> None:
    broken = Loopback(failures=[AdapterUnauthorized(PLATFORM, "revoked")])

    async with running(tmp_path, ScriptedModel(), adapter=broken) as house:
        await house.say("hi")
        assert await house.replies(1) == ["echo: hi"]
        assert not broken.connected.is_set()


async def test_the_runtime_ends_when_every_platform_has_ended(tmp_path: Path) -> None:
    async with asyncio.timeout(5):
        async with running(tmp_path, ScriptedModel()) as house:
            await house.say("hi")
            await house.replies(1)
            house.adapter.ends.set()
            await house.runtime.workers.run()


async def test_a_form_whose_server_is_gone_with_the_process_is_closed_visibly(
    tmp_path: Path,
) -> None:
    async def asks(arguments: CanonicalJson, approver: Approver) -> str:
        answer = await approver.elicit(
            FormRequest(
                server="demo",
                server_sha="",
                tool="add",
                form=Form(
                    message="Which day?",
                    fields=(FormField(name="day", kind=FieldKind.TEXT, label="Day"),),
                ),
            )
        )
        return answer.action

    tools = FakeTools()
    tools.add(tool("add"), asks)
    adapter = Loopback()
    async with running(
        tmp_path, ScriptedModel([calls_tool(ADD)]), tools=tools, adapter=adapter, crash=True
    ) as house:
        await house.say("add")
        await adapter.until(lambda: bool(adapter.cards()))
        assert house.rows(QUESTIONS) == [("elicitation", "pending", None)]

    async with running(
        tmp_path, ScriptedModel([says("interrupted")]), tools=tools, adapter=adapter, first=10
    ) as house:
        assert await house.replies(1) == ["interrupted"]
        await adapter.until(lambda: any(item.kind == "edit" for item in adapter.sent))
        assert house.rows(QUESTIONS)[0][:2] == ("elicitation", "cancelled")

    closed = next(item.body for item in adapter.sent if item.kind == "edit")
    assert "No longer waiting: the gateway was restarted" in closed
    assert len(tools.ran) == 1


@requirement("mcp.start.cold_wait")
async def test_the_first_turn_gives_the_servers_time_and_later_ones_do_not(tmp_path: Path) -> None:
    tools = FakeTools(specs=[tool("add")])

    async with running(tmp_path, ScriptedModel(), tools=tools) as house:
        for n in range(3):
            await house.say("hi")
            await house.replies(n + 1)

    assert tools.waited == [(5.0, None)]


class Nobody:
    """Implements `EventSink` and hears nothing."""

    async def emit(self, event: InboundEvent, *, position: tuple[str, str] | None = None) -> None:
        raise AssertionError("nothing was said")

    def backlog(self, *, platform: str, account: str, waits: bool) -> None:
        raise AssertionError("nothing waited")
