"""What holds whatever way a server is reached, and while its tools change or its entry goes."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from gateway.domain.tools import CallState, ServerState
from mcp_host.server_config import ServerConfig
from tests.fakes.mcp.http_server import ECHO, mcp_server
from tests.fakes.mcp.sse_server import sse_server
from tests.mcp_host.hosting import Running, is_alive, legacy, lines_of, running
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

FRESH = {**ECHO, "name": "fresh"}


@dataclass(frozen=True, slots=True)
class Reached:
    """A server by one of the transports; `change` makes it offer `fresh` and say so."""

    entry: dict[str, Any]
    change: Callable[[Running], Awaitable[object]]


@asynccontextmanager
async def by_stdio() -> AsyncGenerator[Reached]:
    fields = legacy().model_dump(include={"command", "args"})
    yield Reached(fields, lambda host: host.call("changed", "1"))


@asynccontextmanager
async def by_http() -> AsyncGenerator[Reached]:
    news: asyncio.Queue[Any] = asyncio.Queue()
    async with mcp_server(news=news) as server:

        async def change(host: Running) -> None:
            del host
            await server.listening.wait()
            server.tools.append(FRESH)
            news.put_nowait({"method": "notifications/tools/list_changed"})

        yield Reached({"url": server.url}, change)


@asynccontextmanager
async def by_sse() -> AsyncGenerator[Reached]:
    async with sse_server() as server:

        async def change(host: Running) -> None:
            del host
            server.mind.tools.append(FRESH)
            await server.tell({"method": "notifications/tools/list_changed"})

        yield Reached({"url": server.url, "transport": "sse"}, change)


@requirement("case.tn9")
@pytest.mark.parametrize("reach", [by_stdio, by_http, by_sse])
async def test_an_exclusion_holds_by_every_transport_and_after_a_change(reach: Any) -> None:
    async with reach() as reached:
        entry = {**reached.entry, "tools": {"exclude": ["write*", "fr*h"]}}
        async with running(ServerConfig.model_validate(entry)) as host:
            before = {spec.name for spec in host.host.tools()}
            found = host.status().selection.found
            assert "echo" in before
            assert not {name for name in before if name.startswith("write")}

            await reached.change(host)
            await eventually_async(lambda: host.status().selection.found > found)

            assert {spec.name for spec in host.host.tools()} == before
            refused = await host.call("fresh")
            assert (refused.state, "no tool" in refused.text) == (CallState.ERROR, True)


@requirement("fault.f38")
@pytest.mark.parametrize("how", ["removed", "disabled"])
async def test_a_server_that_goes_while_it_is_called_ends_the_call_and_stays_gone(
    how: str, tmp_path: Path
) -> None:
    starts, log = tmp_path / "starts", tmp_path / "log"
    options = ("--starts", starts, "--log", log)
    async with running(legacy(*options)) as host:
        pid = int(lines_of(starts)[0])
        call = asyncio.create_task(host.call("never"))
        await eventually_async(lambda: any("tools/call" in line for line in lines_of(log)))
        if how == "removed":
            del host.wanted["s"]
        else:
            host.wanted["s"] = legacy(*options, enabled=False)
        await host.host.reload()
        result = await asyncio.wait_for(call, 10)

        assert result.state in {CallState.ERROR, CallState.UNKNOWN}
        assert not is_alive(pid)
        assert (await host.call("echo")).state is CallState.ERROR
        await host.host.reload()
        assert len(lines_of(starts)) == 1


@requirement("case.tn5")
async def test_a_tool_is_called_by_the_name_its_server_gave_it() -> None:
    name = "coding.start/β (x)"
    async with mcp_server() as server:
        server.tools.append({**ECHO, "name": name})
        async with running(ServerConfig.model_validate({"url": server.url})) as host:
            result = await host.call("coding_start____x_", "go")

    assert result.text == "go"
    bodies = [cast("dict[str, Any]", request.body) for request in server.requests]
    called = [body["params"]["name"] for body in bodies if body.get("method") == "tools/call"]
    assert called == [name]


@requirement("case.sc1")
async def test_a_server_that_is_removed_while_its_process_is_dead_is_never_started_again(
    tmp_path: Path,
) -> None:
    starts = tmp_path / "starts"
    clock = ManualClock()
    async with running(legacy("--starts", starts), clock=clock) as host:
        os.kill(int(lines_of(starts)[0]), signal.SIGKILL)
        await eventually_async(lambda: host.status().state is ServerState.CONNECTING)
        del host.wanted["s"]
        await host.host.reload()
        for _ in range(20):
            clock.advance(300)
            await host.host.probe()
            await asyncio.sleep(0)
        gone = await host.call("echo", "x")

    assert len(lines_of(starts)) == 1
    assert gone.state is CallState.ERROR
