"""What `/mcp NAME` can say of a server: how it did, in numbers."""

import os
import signal
from pathlib import Path

import pytest

from gateway.domain.form import FormAction, FormAnswer
from gateway.domain.tools import Answers, ServerState, ServerStatistics
from mcp_host.statistics import RECENT, CallTimes
from tests.fakes.model import ScriptedModel, says
from tests.mcp_host.hosting import Person, arguments, legacy, lines_of, running
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


@requirement("mcp.statistics")
async def test_calls_errors_and_times_are_counted_and_a_call_that_was_not_made_is_not() -> None:
    async with running(legacy(trust="untrusted")) as host:
        assert host.status().statistics == ServerStatistics(
            sampling=host.status().statistics.sampling, connections=1
        )
        for tool in ("echo", "echo", "fail", "refuse"):
            await host.call(tool, "x")
        denied = Person(arguments("x"), approval=ValueError("nobody is there"))
        await host.call("write", "x", person=denied)
        found = host.status()

        assert (found.statistics.calls, found.statistics.errors) == (4, 2)
        assert found.statistics.p50_ms is not None
        assert found.statistics.p95_ms is not None
        assert 0 <= found.statistics.p50_ms <= found.statistics.p95_ms < 20_000
        assert (found.state, found.since.tzinfo is not None) == (ServerState.READY, True)


@requirement("mcp.statistics", "elicitation.capability")
async def test_each_way_a_question_of_the_server_ends_has_its_counter() -> None:
    async with running(legacy()) as host:
        for action in (FormAction.DECLINE, FormAction.CANCEL):
            person = Person(arguments(""), form=FormAnswer(action=action))
            await host.call("order", person=person)
        await host.call("order", person=Person(arguments("")))
        await host.call("order_odd", person=Person(arguments("")))
        await host.call("order", person=Person(arguments(""), form=RuntimeError("boom")))

        assert host.status().statistics.elicitation == Answers(
            requests=5, accepted=1, declined=2, cancelled=1, errors=1
        )


@requirement("mcp.statistics")
async def test_requests_for_the_model_are_counted() -> None:
    async with running(legacy(), models=ScriptedModel([says("42")])) as host:
        await host.call("sample", "how many?")
        counted = host.status().statistics.sampling

        assert (counted["requests"], counted["answered"], counted["errors"]) == (1, 1, 0)


@requirement("mcp.statistics")
async def test_a_restart_is_counted_and_the_numbers_stay(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with running(legacy("--starts", starts)) as host:
        await host.call("echo", "x")
        os.kill(int(lines_of(starts)[0]), signal.SIGKILL)
        await eventually_async(lambda: host.status().statistics.restarts == 1)
        await host.call("echo", "x")

        assert host.status().statistics.calls == 2


@requirement("mcp.statistics")
def test_times_are_those_of_the_latest_calls_alone() -> None:
    times = CallTimes()
    assert times.percentile(50) is None
    for ms in [9_999] * 50 + list(range(1, RECENT + 1)):
        times.add(ok=True, ms=ms)

    assert times.calls == RECENT + 50
    assert [times.percentile(percent) for percent in (50, 95, 100)] == [500, 950, 1000]
