"""The connections beside the first: when they begin and end, on servers in memory."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.domain.errors import ServerUnavailable, ToolHostError
from gateway.domain.tools import ServerState
from mcp_host.connection import Connection
from mcp_host.connections import IDLE_SECONDS, SAY_SECONDS, Connections, config_of_another
from mcp_host.server_config import ServerConfig
from mcp_host.shared import Shared
from mcp_host.slots import Slots
from tests.fakes.mcp.memory import MemoryServers, legacy, modern
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

PAUSE = 300.0


class Apart:
    """The connections of a server that asks, and what its callers were told."""

    def __init__(self, servers: MemoryServers, config: ServerConfig) -> None:
        self.clock = ManualClock()
        self.servers = servers
        self.told: list[str] = []
        shared = Shared("s", config, clock=self.clock, asks=True)
        slots = Slots(0)

        def make(number: int) -> Connection:
            return Connection(
                "s",
                config if number == 1 else config_of_another(config),
                open_link=servers.open,
                slots=slots,
                clock=self.clock,
                version="0.0.1",
                probe_interval=PAUSE,
                on_change=lambda: None,
                shared=shared,
                number=number,
                jitter=lambda: 0.0,
            )

        self.connections = Connections(
            make(1), shared=shared, make=make, clock=self.clock, pause=PAUSE
        )
        self.task = asyncio.create_task(self.connections.run(), name="owner")

    async def tell(self, text: str) -> None:
        self.told.append(text)

    def begin(self, chat: str) -> "Caller":
        return Caller(self, chat)

    async def until_open(self, number: int) -> None:
        await eventually_async(lambda: self.servers.open_now == number, what=f"{number} open")

    async def settle(self) -> None:
        """Let every task run that can without time passing."""
        for _ in range(50):
            await asyncio.sleep(0)


class Caller:
    """A call of a chat that lasts until `end`; `number` is the connection it got, 0 until then."""

    def __init__(self, apart: Apart, chat: str) -> None:
        self.number = 0
        self._done = asyncio.Event()
        self._task = asyncio.create_task(self._use(apart, chat), name=f"caller:{chat}")

    async def _use(self, apart: Apart, chat: str) -> None:
        async with apart.connections.lease(chat, tell=apart.tell) as connection:
            self.number = connection.number
            await self._done.wait()

    async def got(self, number: int) -> "Caller":
        await eventually_async(lambda: self.number > 0, what="a connection")
        assert self.number == number
        return self

    async def end(self) -> None:
        self._done.set()
        await self._task


@asynccontextmanager
async def apart(servers: MemoryServers, **fields: Any) -> AsyncGenerator[Apart]:
    config = ServerConfig.model_validate({"command": "unused", "max_connections": 2, **fields})
    found = Apart(servers, config)
    try:
        await eventually_async(lambda: found.connections.first.state is ServerState.READY)
        yield found
    finally:
        found.task.cancel()
        await asyncio.wait({found.task})
        assert servers.open_now == 0


async def two_callers(host: Apart) -> tuple[Caller, Caller]:
    anna = await host.begin("anna").got(1)
    return anna, await host.begin("ben").got(2)


@requirement("elicitation.legacy_separation")
async def test_a_connection_beside_the_first_begins_when_a_second_chat_calls() -> None:
    async with apart(MemoryServers()) as host:
        anna = await host.begin("anna").got(1)
        await (await host.begin("anna").got(1)).end()
        assert host.servers.attempts == 1
        ben = await host.begin("ben").got(2)
        assert host.connections.statistics.connections == 2
        await anna.end()
        await ben.end()
        # A chat comes back to the one it used, where its session is.
        ben = await host.begin("ben").got(2)
        await (await host.begin("anna").got(1)).end()
        await ben.end()

    assert host.servers.attempts == 2
    assert host.told == []


@requirement("elicitation.legacy_separation")
async def test_a_connection_that_nobody_uses_ends_and_the_next_chat_gets_a_new_one() -> None:
    async with apart(MemoryServers(), keepalive_interval=86_400) as host:
        for caller in await two_callers(host):
            await caller.end()
        host.clock.advance(IDLE_SECONDS + 1)
        await host.until_open(1)
        assert host.connections.first.state is ServerState.READY
        for caller in await two_callers(host):
            await caller.end()
        assert host.servers.attempts == 3


@requirement("elicitation.legacy_separation")
async def test_an_old_connection_ends_when_its_call_has_ended() -> None:
    async with apart(MemoryServers(), max_lifetime_seconds=100) as host:
        anna, ben = await two_callers(host)
        host.clock.advance(101)
        await host.settle()
        assert host.servers.open_now == 2
        await ben.end()
        await host.until_open(1)
        await anna.end()
        # The first is restarted, as it is without others.
        await eventually_async(lambda: host.servers.attempts == 3)


@requirement("elicitation.legacy_separation")
async def test_a_connection_that_breaks_is_replaced_by_the_next_call() -> None:
    async with apart(MemoryServers()) as host:
        anna, ben = await two_callers(host)
        host.servers.opened[1].die()
        await host.until_open(1)
        await ben.end()
        await (await host.begin("ben").got(2)).end()
        await anna.end()

    assert host.servers.attempts == 3


@requirement("elicitation.legacy_separation")
async def test_a_broken_connection_whose_process_is_slow_to_go_is_given_to_nobody() -> None:
    async with apart(MemoryServers()) as host:
        anna, ben = await two_callers(host)
        host.servers.goes.clear()
        host.servers.opened[1].die()
        await ben.end()
        ben = host.begin("ben")
        await host.settle()
        assert (ben.number, host.servers.open_now) == (0, 2)
        host.servers.goes.set()
        await (await ben.got(2)).end()
        await anna.end()

    assert host.servers.attempts == 3


@requirement("elicitation.legacy_separation")
async def test_where_no_other_can_be_had_a_chat_waits_for_the_first_and_it_is_not_tried_each_time() -> (
    None
):
    refusal = ServerUnavailable("s", "it runs already", sent=False)
    async with apart(MemoryServers(legacy, handle=refusal)) as host:
        anna = await host.begin("anna").got(1)
        ben, carl = host.begin("ben"), host.begin("carl")
        await eventually_async(lambda: host.servers.attempts == 2)
        await host.settle()
        host.clock.advance(SAY_SECONDS)
        await eventually_async(lambda: len(host.told) == 2)
        await anna.end()
        await (await ben.got(1)).end()
        await (await carl.got(1)).end()
        assert host.servers.attempts == 2

        host.clock.advance(PAUSE)
        host.servers.handle = legacy
        for caller in await two_callers(host):
            await caller.end()

    assert host.servers.attempts == 3


@requirement("elicitation.legacy_separation")
async def test_chats_are_served_in_the_order_in_which_they_came() -> None:
    async with apart(MemoryServers(), max_connections=1) as host:
        anna = await host.begin("anna").got(1)
        waiting = {name: host.begin(name) for name in ("ben", "carl", "dora")}
        await host.settle()
        # Its own chat is not kept out by those who wait; nor does it keep them out for good.
        again = await host.begin("anna").got(1)
        await anna.end()
        await host.settle()
        assert [caller.number for caller in waiting.values()] == [0, 0, 0]
        await again.end()
        later = host.begin("anna")
        for caller in waiting.values():
            assert later.number == 0
            await (await caller.got(1)).end()
        await (await later.got(1)).end()


async def test_a_parked_server_is_not_tried_for_every_chat() -> None:
    async with apart(MemoryServers()) as host:
        host.servers.handle = ToolHostError("s", "there is no such command")
        host.servers.opened[0].die()
        await host.settle()
        host.clock.advance(1)
        await eventually_async(lambda: host.connections.first.state is ServerState.PARKED)
        tried = host.servers.attempts
        callers = [await host.begin(name).got(1) for name in ("anna", "ben")]
        for caller in callers:
            await caller.end()
        assert host.servers.attempts == tried


async def test_a_server_that_turned_modern_needs_no_other_connection() -> None:
    async with apart(MemoryServers(handle=modern)) as host:
        callers = [await host.begin(name).got(1) for name in ("anna", "ben", "carl")]
        for caller in callers:
            await caller.end()

    assert host.servers.attempts == 1


async def test_chats_of_an_exclusive_server_take_turns_on_its_one_connection() -> None:
    async with apart(MemoryServers(), exclusive=True) as host:
        anna = await host.begin("anna").got(1)
        ben = host.begin("ben")
        await host.settle()
        assert ben.number == 0
        await anna.end()
        await (await ben.got(1)).end()

    assert host.servers.attempts == 1


async def test_whoever_waits_when_a_server_is_taken_away_is_let_go() -> None:
    async with apart(MemoryServers(), max_connections=1) as host:
        anna, ben = await host.begin("anna").got(1), host.begin("ben")
        await host.settle()
        host.task.cancel()
        await ben.got(1)
        with pytest.raises(ServerUnavailable, match="closed"):
            await host.connections.first.ready()
        await anna.end()
        await ben.end()
