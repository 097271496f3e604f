"""A server's process ends when it is unused or old, comes back by itself, and nobody notices."""

from typing import Any

import pytest

from gateway.domain.tools import ServerState
from tests.fakes.mcp.memory import MemoryServers
from tests.mcp_host.owning import Owned, owned
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


async def passed(owner: Owned, seconds: float) -> None:
    """Let time pass in steps, so that everybody who waits sees each of them."""
    for _ in range(10):
        owner.clock.advance(seconds / 10)
        await owner.settle()


def tools(owner: Owned) -> list[str]:
    catalog = owner.connection.catalog
    return [] if catalog is None else [tool.name for tool in catalog.tools]


@requirement("mcp.recycling")
async def test_an_unused_server_ends_keeps_its_tools_and_starts_with_the_next_call() -> None:
    async with owned(MemoryServers(), idle_timeout_seconds=60, keepalive_interval=3600) as owner:
        await owner.until(ServerState.READY)
        await passed(owner, 59)
        assert owner.connection.state is ServerState.READY
        await passed(owner, 2)
        await owner.until(ServerState.LAZY)

        assert owner.servers.open_now == 0
        assert owner.connection.reason == "not used for 60 s"
        assert tools(owner) == ["echo"]

        assert (await owner.call())["content"]
        assert (owner.servers.attempts, owner.servers.open_now) == (2, 1)


@requirement("mcp.recycling")
async def test_each_use_counts_from_its_end() -> None:
    async with owned(MemoryServers(), idle_timeout_seconds=60, keepalive_interval=3600) as owner:
        await owner.until(ServerState.READY)
        for _ in range(4):
            await passed(owner, 50)
            async with owner.connection.turn():
                await owner.call()

        assert (owner.connection.state, owner.servers.attempts) == (ServerState.READY, 1)


@requirement("mcp.recycling")
async def test_an_old_server_is_replaced_at_once_with_its_tools_there_all_the_time() -> None:
    async with owned(MemoryServers(), max_lifetime_seconds=600, keepalive_interval=3600) as owner:
        await owner.until(ServerState.READY)
        seen: list[list[str]] = []
        for _ in range(3):
            await passed(owner, 601)
            seen.append(tools(owner))
            await owner.until(ServerState.READY)

        assert seen == [["echo"]] * 3
        assert (owner.servers.attempts, owner.servers.open_now) == (4, 1)
        assert owner.connection.starts == 4


@requirement("mcp.recycling.never_while_open")
@pytest.mark.parametrize(
    ("limit", "then"),
    [
        ("idle_timeout_seconds", (ServerState.LAZY, 1)),
        ("max_lifetime_seconds", (ServerState.READY, 2)),
    ],
)
async def test_a_server_that_is_used_is_let_be_until_its_last_user_left(
    limit: str, then: tuple[ServerState, int]
) -> None:
    limits: dict[str, Any] = {limit: 60, "keepalive_interval": 3600}
    async with owned(MemoryServers(), **limits) as owner:
        await owner.until(ServerState.READY)
        async with owner.connection.turn():
            async with owner.connection.turn():
                # A call, and a question that a person takes an hour to answer.
                await passed(owner, 3600)
            await passed(owner, 3600)
            assert (owner.connection.state, owner.servers.attempts) == (ServerState.READY, 1)
            assert (await owner.call())["content"]
        await passed(owner, 61)

        await owner.until(then[0])
        assert (owner.connection.state, owner.servers.attempts) == then


@requirement("mcp.recycling")
async def test_without_limits_a_server_is_never_ended() -> None:
    async with owned(MemoryServers(), keepalive_interval=86_400) as owner:
        await owner.until(ServerState.READY)
        await passed(owner, 80_000)

        assert (owner.connection.state, owner.servers.attempts) == (ServerState.READY, 1)
