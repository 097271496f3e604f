"""A connection with its owner task, on servers in memory and a clock that the test moves."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from gateway.domain.tools import ServerState
from gateway.ports import Approval
from mcp_host.connection import Connection
from mcp_host.server_config import ServerConfig
from mcp_host.shared import Shared
from mcp_host.slots import Slots
from tests.fakes.mcp.memory import MemoryServer, MemoryServers
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async


class Unasking:
    """An asker for calls whose server asks nothing."""

    async def answer(self, params: Mapping[str, object]) -> dict[str, object]:
        raise AssertionError(f"nobody was to be asked {params}")

    async def may_sample(self, excerpt: str) -> Approval:
        raise AssertionError(f"nobody was to be asked {excerpt}")

    async def tell(self, text: str) -> None:
        raise AssertionError(f"nothing was to be told: {text}")


class Owned:
    """A running connection, its clock and its servers."""

    def __init__(self, servers: MemoryServers, config: ServerConfig, slots: Slots) -> None:
        self.clock = ManualClock()
        self.servers = servers
        self.changes = 0
        self.connection = Connection(
            "s",
            config,
            open_link=servers.open,
            slots=slots,
            clock=self.clock,
            version="0.0.1",
            probe_interval=300,
            on_change=self._count,
            shared=Shared("s", config, clock=self.clock),
            jitter=lambda: 0.0,
        )
        self.task = asyncio.create_task(self.connection.run(), name="owner")

    def _count(self) -> None:
        self.changes += 1

    async def until(self, state: ServerState) -> None:
        await eventually_async(
            lambda: self.connection.state is state, what=f"{state} ({self.connection.state})"
        )

    async def settle(self) -> None:
        """Let every task run that can without time passing."""
        for _ in range(50):
            await asyncio.sleep(0)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, at whose end somebody looks for servers to be probed."""
        self.clock.advance(seconds)
        self.connection.probe_if_due()

    async def call(self, tool: str = "echo", *, seconds: float = 60) -> Mapping[str, object]:
        session = await self.connection.ready()
        returned = await self.connection.calls.run(
            session, tool, {}, asker=Unasking(), seconds=seconds
        )
        return returned.raw

    @property
    def server(self) -> MemoryServer:
        return self.servers.opened[-1]


@asynccontextmanager
async def owned(
    servers: MemoryServers, *, slots: Slots | None = None, **fields: Any
) -> AsyncGenerator[Owned]:
    config = ServerConfig.model_validate({"command": "unused", **fields})
    owner = Owned(servers, config, slots or Slots(0))
    try:
        yield owner
    finally:
        owner.task.cancel()
        await asyncio.wait({owner.task})
        assert owner.task.cancelled()
        assert owner.connection.state is ServerState.CLOSED
        assert servers.open_now == 0
