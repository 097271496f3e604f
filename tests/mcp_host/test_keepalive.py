"""Whether a server is still there is asked in the way of its era, and a quiet one is replaced."""

import asyncio
from typing import Any

import pytest

from gateway.domain.tools import ServerState
from mcp_host.minding import MISSES
from tests.fakes.mcp.memory import (
    MemoryServer,
    MemoryServers,
    Message,
    legacy,
    methods,
    modern,
)
from tests.mcp_host.owning import Owned, owned
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

INTERVAL = 30


def knows_ping(server: MemoryServer, message: Message) -> Message | None:
    return {"result": {}} if message["method"] == "ping" else legacy(server, message)


def deaf_to(*silent: str) -> Any:
    def handle(server: MemoryServer, message: Message) -> Message | None:
        return None if message["method"] in silent else legacy(server, message)

    return handle


async def rounds(owner: Owned, count: int) -> None:
    """Let that many intervals pass."""
    for _ in range(count):
        owner.clock.advance(INTERVAL)
        await owner.settle()


@requirement("mcp.keepalive")
@pytest.mark.parametrize(
    ("handle", "method"),
    [(knows_ping, "ping"), (legacy, "ping"), (modern, "server/discover")],
    ids=["legacy", "legacy without ping", "modern"],
)
async def test_a_server_is_asked_by_its_era_and_stays_whatever_it_answers(
    handle: Any, method: str
) -> None:
    async with owned(MemoryServers(handle=handle), keepalive_interval=INTERVAL) as owner:
        await owner.until(ServerState.READY)
        before = methods(owner.server).count(method)
        await rounds(owner, 5)

        assert methods(owner.server).count(method) == before + 5
        assert (owner.connection.state, owner.servers.attempts) == (ServerState.READY, 1)


@requirement("mcp.keepalive")
async def test_a_server_that_says_nothing_any_more_is_replaced_after_two_questions() -> None:
    servers = MemoryServers(deaf_to("ping"))
    async with owned(servers, keepalive_interval=INTERVAL, connect_timeout=0.2) as owner:
        await owner.until(ServerState.READY)
        first = owner.server
        await rounds(owner, 1)
        await first.seen("ping", times=MISSES)
        await owner.until(ServerState.CONNECTING)
        assert "did not answer" in owner.connection.reason
        owner.clock.advance(2)
        await owner.until(ServerState.READY)

        assert (owner.servers.attempts, owner.server is first) == (2, False)


@requirement("mcp.keepalive")
async def test_a_server_that_works_for_somebody_is_not_asked() -> None:
    servers = MemoryServers(deaf_to("ping", "tools/call"))
    async with owned(servers, keepalive_interval=INTERVAL, connect_timeout=0.2) as owner:
        await owner.until(ServerState.READY)
        async with owner.connection.turn():
            call = asyncio.create_task(owner.call())
            await owner.server.seen("tools/call")
            await rounds(owner, 5)

            assert "ping" not in methods(owner.server)
            assert owner.connection.state is ServerState.READY
            call.cancel()
            await asyncio.wait({call})
