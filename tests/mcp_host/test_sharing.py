"""Who may call one server at the same time."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.tools import CallState
from tests.mcp_host.hosting import Person, arguments, legacy, lines_of, running
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


def holding(path: Path) -> Person:
    """A caller of a tool that returns when the file is there."""
    return Person(arguments(str(path)))


@requirement("tools.conversations_never_wait")
async def test_a_call_of_one_conversation_waits_for_no_other(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs)) as host:
        held = asyncio.create_task(host.call("hold_write", person=holding(tmp_path / "release")))
        await eventually_async(lambda: lines_of(runs) == ["hold"])
        assert (await host.call("echo", "quick")).text == "quick"
        assert not held.done()
        (tmp_path / "release").touch()

        assert (await held).text == "released"


@requirement("tools.conversations_never_wait")
async def test_an_exclusive_server_gets_one_call_at_a_time_in_their_order(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs, exclusive=True)) as host:
        first = holding(tmp_path / "release")
        held = asyncio.create_task(host.call("hold_write", person=first))
        await eventually_async(lambda: lines_of(runs) == ["hold"])
        people = [Person(arguments(text)) for text in ("a", "b")]
        waiting = [asyncio.create_task(host.call("write", person=person)) for person in people]
        for _ in range(20):
            await asyncio.sleep(0.01)
        # What waits is not written down as out.
        assert [person.starts for person in people] == [[], []]
        assert lines_of(runs) == ["hold"]
        (tmp_path / "release").touch()
        results = [await call for call in (held, *waiting)]

    assert [result.state for result in results] == [CallState.OK] * 3
    assert lines_of(runs) == ["hold", "a", "b"]


@requirement("tools.conversations_never_wait")
async def test_a_caller_that_goes_away_gives_its_turn_at_an_exclusive_server_back(
    tmp_path: Path,
) -> None:
    runs = tmp_path / "runs"
    async with running(legacy("--runs", runs, exclusive=True)) as host:
        held = asyncio.create_task(host.call("hold_write", person=holding(tmp_path / "never")))
        await eventually_async(lambda: lines_of(runs) == ["hold"])
        waiting = asyncio.create_task(host.call("echo", "next"))
        gone = asyncio.create_task(host.call("echo", "gone"))
        await asyncio.sleep(0)
        gone.cancel()
        held.cancel()

        assert (await waiting).text == "next"
        await asyncio.wait({gone, held})


@requirement("tools.batch")
async def test_a_server_says_for_all_its_tools_whether_they_run_side_by_side() -> None:
    servers = {"wide": legacy(supports_parallel_tool_calls=True), "narrow": legacy()}
    async with running(servers) as host:
        parallel = {(spec.server, spec.parallel) for spec in host.host.tools()}

    assert parallel == {("wide", True), ("narrow", False)}
