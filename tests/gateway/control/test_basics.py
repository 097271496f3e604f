import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.errors import GatewayRefused, ToolHostError
from gateway.domain.health import Health, HealthState
from gateway.domain.tools import Reloaded, ServerState, ServerStatus
from gateway.ports import StoreHealth
from tests.fakes.loopback import PLATFORM
from tests.fakes.office import open_office
from tests.fakes.tools import FakeTools, tool
from tests.support.clock import NOON
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

NOON_MS = 1_767_268_800_000


class Servers(FakeTools):
    """A tool host with a parked server, whose reloads a test sets."""

    def servers(self) -> list[ServerStatus]:
        parked = ServerStatus(
            name="gone",
            state=ServerState.PARKED,
            since=NOON,
            tools=0,
            reason="no such command",
            next_probe_at=NOON + timedelta(seconds=1),
        )
        return [*FakeTools.servers(self), parked]

    async def reload(self, server: str | None = None) -> Reloaded:
        if server == "lost":
            raise ToolHostError("lost", "is not configured")
        if server == "gone":
            raise ToolHostError("gone", "did not come back")
        return Reloaded(added=("new",), removed=("old",), parked=(("gone", "no such command"),))


@requirement("design.gateway.status_json")
async def test_the_status_tells_of_every_part_in_its_documented_shape(tmp_path: Path) -> None:
    tools = Servers()
    tools.add(tool("add"))

    async with open_office(tmp_path, tools=tools) as office:
        found = await office.client.status()

    platform = {"name": "loop", "account": "", "state": "connected", "reason": ""}
    assert found["platforms"] == [{**platform, "since": NOON_MS}]
    assert found["mcp_servers"][1] == {
        "name": "gone",
        "state": "parked",
        "tools": 0,
        "reason": "no such command",
        "since": NOON_MS,
        "next_probe_at": NOON_MS + 1000,
    }
    assert {key: found[key] for key in ("running", "healthy", "api", "version", "home")} == {
        "running": True,
        "healthy": True,
        "api": {"major": 1, "minor": 0},
        "version": "1.2.3",
        "home": str(tmp_path),
    }
    assert 0 <= found["scheduler"]["heartbeat_age_s"] < 5
    assert (found["store"]["url"], found["store"]["schema"]) == ("sqlite:///x", 1)
    assert found["cursor"] >= 1
    assert found["pid"] > 0
    assert found["started_at"] > NOON_MS


@requirement("design.gateway.status_json", "platform.failure.never_stops_others")
@pytest.mark.parametrize(
    ("state", "healthy"),
    [
        (HealthState.CONNECTED, True),
        (HealthState.CONNECTING, False),
        (HealthState.DEGRADED, False),
        (HealthState.UNAUTHORIZED, False),
        (HealthState.OFF, False),
    ],
)
async def test_only_a_platform_that_receives_is_healthy(
    tmp_path: Path, state: HealthState, healthy: bool
) -> None:
    async with open_office(tmp_path) as office:
        office.health[(PLATFORM, "")] = Health(state=state, since=NOON, reason="why")
        found = await office.client.status()

    assert found["healthy"] is healthy
    assert found["platforms"][0]["state"] == state.value
    assert found["platforms"][0]["reason"] == "why"


@pytest.mark.parametrize(
    ("health", "state"),
    [
        (StoreHealth(busy_since=NOON, reason="disk full"), "busy"),
        (StoreHealth(broken="it is gone"), "broken"),
    ],
)
async def test_a_store_that_cannot_write_is_told_and_degrades(
    tmp_path: Path, health: StoreHealth, state: str
) -> None:
    async with open_office(tmp_path) as office:
        office.store_health[0] = health
        found = await office.client.status()

    assert (found["healthy"], found["store"]["state"]) == (False, state)
    assert found["store"]["reason"] == (health.broken or health.reason)


async def test_a_reload_tells_what_it_changed(tmp_path: Path) -> None:
    async with open_office(tmp_path, tools=Servers()) as office:
        done = await office.client.reload()
        with pytest.raises(GatewayRefused, match="no MCP server lost") as unknown:
            await office.client.reload("lost")
        with pytest.raises(GatewayRefused, match="did not come back") as failed:
            await office.client.reload("gone")

    took = done["took_ms"]
    assert isinstance(took, int)
    assert done == {
        "added": ["new"],
        "removed": ["old"],
        "changed": [],
        "parked": [{"name": "gone", "reason": "no such command"}],
        "took_ms": took,
    }
    assert (unknown.value.code, failed.value.code) == ("not_found", "rejected")


async def test_a_stop_is_answered_before_it_happens(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        assert (await office.client.stop())["stopping"] is True
        await office.client.stop(now=True)
        await office.client.status()

    assert office.stopped == [False, True]


async def test_a_leaving_gateway_takes_nothing_more_and_says_so(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        office.runtime.stop()
        found = await office.client.status()
        with pytest.raises(GatewayRefused, match="stopping") as refused:
            await office.lines("hello")

    assert (found["healthy"], found["stopping"]) == (False, True)
    assert refused.value.code == "stopping"


async def test_the_event_stream_tells_the_head_and_then_each_move(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        stream = office.client.events(after=0)
        head = await _next(stream)
        await office.say("one")
        moved = await _next(stream)
        await office.chat.until(lambda: len(office.chat.texts()) == 1)
        while moved < await office.readers.events.head():
            moved = await _next(stream)
        page = await office.readers.events.after(head, limit=10)
        await stream.aclose()

    assert head == 1
    assert page.next == moved
    assert len(page.events) == 2


async def test_a_reader_that_sleeps_gets_fewer_hints_and_the_newest_cursor(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        stream = office.client.events()
        await _next(stream)
        for n in range(30):
            await office.say(f"message {n}")
        head = await office.readers.events.head()
        hints = 0
        while await _next(stream) < head:
            hints += 1
        await stream.aclose()

    assert hints < 60


async def test_a_stream_ends_with_the_gateway(tmp_path: Path) -> None:
    cursors: list[int] = []

    async def read(stream: AsyncGenerator[int], first: asyncio.Event) -> None:
        async for cursor in stream:
            cursors.append(cursor)
            first.set()

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        first = asyncio.Event()
        async with open_office(tmp_path) as office:
            tasks.create_task(read(office.client.events(), first))
            await first.wait()

    assert cursors


async def test_a_cursor_that_is_none_is_refused(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        with pytest.raises(GatewayRefused, match="after must be a cursor"):
            await _next(office.client.events(after=-1))


async def _next(stream: AsyncGenerator[Any]) -> Any:
    async with asyncio.timeout(5):
        return await anext(stream)
