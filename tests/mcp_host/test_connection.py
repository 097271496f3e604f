"""The owner of a connection, on servers in memory and a clock that the test moves."""

import asyncio
import logging
from typing import Any

import pytest

from gateway.domain.errors import ServerParked, ServerUnavailable, ToolHostError, ToolTimeout
from gateway.domain.tools import ServerState
from mcp_host.catalog import MAX_TOOLS
from mcp_host.slots import Slots
from tests.fakes.mcp.memory import (
    ECHO,
    HANDSHAKE,
    MemoryServer,
    MemoryServers,
    Message,
    legacy,
    methods,
    modern,
    params,
)
from tests.mcp_host.owning import owned
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

GONE = ServerUnavailable("s", "nobody is there", sent=False)


def hides(*silent: str) -> Any:
    def handle(server: MemoryServer, message: Message) -> Message | None:
        return None if message["method"] in silent else legacy(server, message)

    return handle


# --- coming up ------------------------------------------------------------------------


async def test_a_server_that_answers_is_ready_with_its_tools() -> None:
    async with owned(MemoryServers()) as owner:
        await owner.until(ServerState.READY)

        catalog = owner.connection.catalog
        assert catalog is not None
        assert [tool.name for tool in catalog.tools] == ["echo"]
        assert (await owner.call())["content"]


@requirement("mcp.failure.tries")
async def test_a_server_that_fails_is_tried_again_after_1_2_and_4_seconds_then_parked() -> None:
    async with owned(MemoryServers(handle=GONE)) as owner:
        for pause, attempts in ((1, 1), (2, 2), (4, 3)):
            await owner.settle()
            assert owner.servers.attempts == attempts
            assert owner.connection.state is ServerState.CONNECTING
            owner.clock.advance(pause - 0.1)
            await owner.settle()
            assert owner.servers.attempts == attempts
            owner.clock.advance(0.1)
        await owner.until(ServerState.PARKED)

        assert owner.servers.attempts == 4
        assert owner.connection.reason == "nobody is there"


async def test_what_cannot_get_better_by_itself_parks_at_once() -> None:
    async with owned(MemoryServers(handle=ToolHostError("s", "command not found: x"))) as owner:
        await owner.until(ServerState.PARKED)

        assert owner.servers.attempts == 1
        assert owner.connection.reason == "command not found: x"


@requirement("case.mh16", "mcp.parked.probes")
async def test_a_parked_server_is_probed_after_five_minutes_and_gets_its_tools_back() -> None:
    async with owned(MemoryServers(ToolHostError("s", "no"), ToolHostError("s", "no"))) as owner:
        await owner.until(ServerState.PARKED)
        probe_at = owner.connection.next_probe_at
        assert probe_at is not None
        assert (probe_at - owner.clock.now()).total_seconds() == 300
        owner.pass_time(299)
        await owner.settle()
        assert owner.servers.attempts == 1
        owner.pass_time(1)
        owner.connection.probe_if_due()
        await owner.settle()
        assert owner.servers.attempts == 2
        owner.pass_time(300)
        await owner.until(ServerState.READY)

        assert owner.connection.catalog is not None
        assert owner.connection.next_probe_at is None


@requirement("mcp.parked.answers", "mcp.parked.probes")
async def test_a_call_to_a_parked_server_is_answered_at_once_and_wakes_it() -> None:
    async with owned(MemoryServers(ToolHostError("s", "no licence"))) as owner:
        await owner.until(ServerState.PARKED)
        owner.clock.advance(60)

        with pytest.raises(ServerParked, match="parked: no licence, next try in 240 s"):
            await owner.connection.ready()
        await owner.until(ServerState.READY)


@requirement("mcp.start.cold_wait")
async def test_a_call_to_a_connecting_server_waits_for_it() -> None:
    async with owned(MemoryServers(GONE)) as owner:
        await owner.settle()
        call = asyncio.create_task(owner.call())

        # It does not wait for the pause between two tries either.
        assert (await call)["content"]


@requirement("mcp.start.cold_wait")
async def test_a_call_waits_for_a_connecting_server_no_longer_than_its_connect_timeout() -> None:
    async with owned(MemoryServers(handle=hides("initialize")), connect_timeout=0.1) as owner:
        with pytest.raises((ServerUnavailable, ServerParked)) as caught:
            await owner.connection.ready()

        assert not isinstance(caught.value, ServerUnavailable) or not caught.value.sent


async def test_a_silent_server_fails_after_its_own_connect_timeout() -> None:
    async with owned(MemoryServers(hides("tools/list")), connect_timeout=0.1) as owner:
        await eventually_async(lambda: "no answer in 0.1 s" in owner.connection.reason)


@requirement("mcp.protocol.auto")
async def test_the_era_is_remembered_from_one_connection_to_the_next() -> None:
    async with owned(MemoryServers(handle=modern)) as owner:
        await owner.until(ServerState.READY)
        await owner.connection.reconnect()

        assert [methods(server)[:2] for server in owner.servers.opened] == [
            ["initialize", "server/discover"],
            ["server/discover", "tools/list"],
        ]


async def test_transitions_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcp_host.connection")
    async with owned(MemoryServers(handle=ToolHostError("s", "no licence"))) as owner:
        await owner.until(ServerState.PARKED)
        for _ in range(5):
            owner.pass_time(300)
            await owner.settle()

    assert owner.servers.attempts == 6
    assert [record.getMessage() for record in caplog.records] == [
        "server s: connecting -> parked: no licence",
        "server s: parked -> closed",
    ]


# --- going down ---------------------------------------------------------------------------


@requirement("mcp.failure.tries")
async def test_a_lost_server_is_tried_five_times_then_parked_with_its_tools_known() -> None:
    async with owned(MemoryServers(legacy, handle=GONE)) as owner:
        await owner.until(ServerState.READY)
        owner.server.die()
        await owner.until(ServerState.CONNECTING)
        assert owner.connection.reason == "it went away"
        for attempts, pause in enumerate((1, 2, 4, 8, 16), start=1):
            await owner.settle()
            assert owner.servers.attempts == attempts
            owner.clock.advance(pause)
        await owner.until(ServerState.PARKED)

        assert owner.servers.attempts == 6
        assert owner.connection.catalog is not None


async def test_a_server_that_keeps_dying_is_parked_in_the_end() -> None:
    async with owned(MemoryServers()) as owner:
        for pause in (1, 2, 4, 8, 16):
            await owner.until(ServerState.READY)
            owner.server.die()
            await owner.until(ServerState.CONNECTING)
            owner.clock.advance(pause)
        await owner.until(ServerState.READY)
        owner.server.die()
        await owner.until(ServerState.PARKED)


async def test_a_server_that_was_up_for_a_while_starts_afresh_with_its_tries() -> None:
    async with owned(MemoryServers()) as owner:
        for _ in range(8):
            await owner.until(ServerState.READY)
            owner.clock.advance(61)
            owner.server.die()
            await owner.until(ServerState.CONNECTING)
            owner.clock.advance(1)
        await owner.until(ServerState.READY)


async def test_a_dead_link_fails_its_calls_at_once_with_the_reason() -> None:
    async with owned(MemoryServers(hides("tools/call"))) as owner:
        await owner.until(ServerState.READY)
        call = asyncio.create_task(owner.call())
        await owner.server.seen("tools/call")
        owner.server.die()

        async with asyncio.timeout(5):
            with pytest.raises(ServerUnavailable, match="it went away") as caught:
                await call
        assert caught.value.sent


async def test_a_call_after_the_link_was_lost_waits_for_the_next_one() -> None:
    async with owned(MemoryServers()) as owner:
        await owner.until(ServerState.READY)
        owner.server.die()
        await owner.until(ServerState.CONNECTING)

        assert (await owner.call())["content"]
        assert owner.servers.attempts == 2


@requirement("mcp.failure.never_parks_on_call")
async def test_a_timeout_cancels_the_call_on_the_wire_and_leaves_the_server_ready() -> None:
    async with owned(MemoryServers(hides("tools/call"))) as owner:
        await owner.until(ServerState.READY)
        with pytest.raises(ToolTimeout, match=r"no answer within 0\.05 s"):
            await owner.call(seconds=0.05)
        (call,) = owner.server.of("tools/call")
        (cancelled,) = await owner.server.seen("notifications/cancelled")

        assert params(cancelled)["requestId"] == call["id"]
        assert owner.connection.state is ServerState.READY


async def test_a_cancelled_caller_cancels_its_call_and_no_other() -> None:
    async with owned(MemoryServers(hides("tools/call"))) as owner:
        await owner.until(ServerState.READY)
        first, second = (asyncio.create_task(owner.call()) for _ in range(2))
        calls = await owner.server.seen("tools/call", times=2)
        first.cancel()
        await asyncio.wait({first})
        await owner.server.seen("notifications/cancelled")
        owner.server.send({"id": calls[1]["id"], "result": {"content": [1]}})

        assert first.cancelled()
        assert (await second)["content"] == [1]


async def test_reconnecting_ends_the_calls_in_flight_with_the_reason() -> None:
    async with owned(MemoryServers(hides("tools/call"))) as owner:
        await owner.until(ServerState.READY)
        call = asyncio.create_task(owner.call())
        await owner.server.seen("tools/call")
        await owner.connection.reconnect()

        with pytest.raises(ServerUnavailable, match="it is being reconnected"):
            await call
        assert owner.connection.state is ServerState.READY
        assert owner.servers.attempts == 2


async def test_reconnecting_a_parked_server_returns_when_the_try_has_ended() -> None:
    async with owned(MemoryServers(handle=ToolHostError("s", "no"))) as owner:
        await owner.until(ServerState.PARKED)
        await owner.connection.reconnect()
        assert owner.servers.attempts == 2
        owner.servers.handle = legacy
        await owner.connection.try_now()

        assert owner.connection.state is ServerState.READY


async def test_nobody_waits_for_a_closed_connection() -> None:
    async with owned(MemoryServers(hides("initialize"))) as owner:
        waiting = asyncio.create_task(owner.connection.try_now())
        ready = asyncio.create_task(owner.connection.ready())
        await owner.settle()
        owner.task.cancel()
        await asyncio.wait({owner.task})

        await waiting
        with pytest.raises(ServerUnavailable, match="closed"):
            await ready
        await owner.connection.reconnect()


async def test_nonsense_in_the_handshake_is_a_reason_and_no_traceback() -> None:
    def nonsense(server: MemoryServer, message: Message) -> Message | None:
        if message["method"] == "initialize":
            return {"result": {**HANDSHAKE, "protocolVersion": 5}}
        return legacy(server, message)

    async with owned(MemoryServers(handle=nonsense)) as owner:
        await eventually_async(lambda: "malformed answer" in owner.connection.reason)


# --- the list of tools -------------------------------------------------------------------


@requirement("mcp.list_changed")
async def test_a_list_in_pages_is_read_whole() -> None:
    def paged(server: MemoryServer, message: Message) -> Message | None:
        if message["method"] != "tools/list":
            return legacy(server, message)
        page = int(params(message).get("cursor", 0))
        found: Message = {"tools": [{**ECHO, "name": f"tool_{page}"}]}
        return {"result": {**found, "nextCursor": str(page + 1)} if page < 4 else found}

    async with owned(MemoryServers(paged)) as owner:
        await owner.until(ServerState.READY)

        catalog = owner.connection.catalog
        assert catalog is not None
        assert [tool.name for tool in catalog.tools] == [f"tool_{page}" for page in range(5)]
        assert catalog.problems == ()


async def test_a_list_is_read_up_to_ten_thousand_tools_and_not_for_ever() -> None:
    pages = 0

    def endless(server: MemoryServer, message: Message) -> Message | None:
        nonlocal pages
        if message["method"] != "tools/list":
            return legacy(server, message)
        pages += 1
        return {"result": {"tools": [ECHO] * 4_000, "nextCursor": str(pages)}}

    async with owned(MemoryServers(endless)) as owner:
        await owner.until(ServerState.READY)

        catalog = owner.connection.catalog
        assert catalog is not None
        assert len(catalog.tools) == MAX_TOOLS
        assert pages == 3
        assert "more than 10000 tools" in owner.connection.notes[0]


async def test_a_cursor_that_comes_back_ends_the_list() -> None:
    def circle(server: MemoryServer, message: Message) -> Message | None:
        if message["method"] != "tools/list":
            return legacy(server, message)
        return {"result": {"tools": [ECHO], "nextCursor": "again"}}

    async with owned(MemoryServers(circle)) as owner:
        await owner.until(ServerState.READY)

        assert "repeats a cursor" in owner.connection.notes[0]


async def test_malformed_tools_are_left_out_and_said() -> None:
    def mixed(server: MemoryServer, message: Message) -> Message | None:
        if message["method"] != "tools/list":
            return legacy(server, message)
        return {"result": {"tools": [{"name": 5}, ECHO, "no tool", {"name": "bare"}]}}

    async with owned(MemoryServers(mixed)) as owner:
        await owner.until(ServerState.READY)

        catalog = owner.connection.catalog
        assert catalog is not None
        assert [tool.name for tool in catalog.tools] == ["echo"]
        assert len(catalog.problems) == 3


async def test_a_server_without_tools_is_ready_too() -> None:
    def bare(server: MemoryServer, message: Message) -> Message | None:
        match message["method"]:
            case "initialize":
                return {"result": {**HANDSHAKE, "capabilities": {}}}
            case "tools/list":
                return {"error": {"code": -32601, "message": "no tools"}}
            case _:
                return legacy(server, message)

    async with owned(MemoryServers(bare)) as owner:
        await owner.until(ServerState.READY)


@requirement("mcp.list_changed")
async def test_two_hundred_changes_cost_at_most_two_refreshes() -> None:
    async with owned(MemoryServers()) as owner:
        await owner.until(ServerState.READY)
        owner.server.tools = [ECHO, {**ECHO, "name": "fresh"}]
        for _ in range(200):
            owner.server.send({"method": "notifications/tools/list_changed"})
        for _ in range(10):
            await owner.settle()
            owner.clock.advance(1)
        await owner.settle()

        catalog = owner.connection.catalog
        assert catalog is not None
        assert [tool.name for tool in catalog.tools] == ["echo", "fresh"]
        assert 2 <= len(owner.server.of("tools/list")) <= 3


def busy(server: MemoryServer, message: Message) -> Message:
    return {"error": {"code": 1, "message": f"{server.last_words}busy with {message['method']}"}}


@requirement("mcp.list_changed")
async def test_a_refresh_that_fails_keeps_the_tools() -> None:
    async with owned(MemoryServers()) as owner:
        await owner.until(ServerState.READY)
        owner.server.handle = busy
        owner.server.send({"method": "notifications/tools/list_changed"})
        await owner.settle()
        owner.clock.advance(1)
        await owner.server.seen("tools/list", times=2)
        await owner.settle()

        assert owner.connection.state is ServerState.READY
        assert owner.connection.catalog is not None


@requirement("case.mh9")
async def test_a_call_resolves_while_the_list_is_read_again() -> None:
    async with owned(MemoryServers(hides("tools/call"))) as owner:
        await owner.until(ServerState.READY)
        call = asyncio.create_task(owner.call())
        (request,) = await owner.server.seen("tools/call")
        owner.server.handle = hides("tools/list")
        owner.connection.refresh()
        await owner.settle()
        owner.clock.advance(1)
        await owner.server.seen("tools/list", times=2)
        owner.server.send({"id": request["id"], "result": {"content": [1]}})

        assert (await call)["content"] == [1]


@requirement("mcp.list_changed")
async def test_a_modern_server_is_listened_to() -> None:
    def listening(server: MemoryServer, message: Message) -> Message | None:
        if message["method"] == "server/discover":
            capabilities = {"tools": {"listChanged": True}}
            return {"result": {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}}
        return None if message["method"] == "subscriptions/listen" else modern(server, message)

    async with owned(MemoryServers(listening)) as owner:
        await owner.until(ServerState.READY)
        (listen,) = await owner.server.seen("subscriptions/listen")
        owner.server.send({"method": "notifications/tools/list_changed"})
        await owner.settle()
        owner.clock.advance(1)
        await owner.server.seen("tools/list", times=2)

        assert params(listen)["notifications"] == {"toolsListChanged": True}


# --- many at once ---------------------------------------------------------------------------


@requirement("mcp.discovery_concurrency")
async def test_only_so_many_servers_connect_at_once() -> None:
    slots = Slots(2)
    servers = [MemoryServers(hides("initialize")) for _ in range(4)]
    async with (
        owned(servers[0], slots=slots) as first,
        owned(servers[1], slots=slots),
        owned(servers[2], slots=slots) as third,
        owned(servers[3], slots=slots),
    ):
        await third.settle()
        assert [one.attempts for one in servers] == [1, 1, 0, 0]
        first.task.cancel()
        await third.settle()
        await eventually_async(lambda: [one.attempts for one in servers] == [1, 1, 1, 0])


@requirement("mcp.discovery_concurrency")
async def test_without_a_limit_all_connect_at_once() -> None:
    slots = Slots(0)
    servers = [MemoryServers(hides("initialize")) for _ in range(3)]
    async with (
        owned(servers[0], slots=slots) as first,
        owned(servers[1], slots=slots),
        owned(servers[2], slots=slots),
    ):
        await first.settle()

        assert [one.attempts for one in servers] == [1, 1, 1]
