"""What the host does with many servers, calls and people at a time, and with a very long answer.

Floors are the bare SDK's client on the same servers, in the same run.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Final

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from bench.report import Row, emit, median, percentile, spread
from gateway.domain.tools import CallState
from mcp_host.server_config import McpConfig, ServerConfig
from tests.mcp_host.hosting import Person, Running, arguments, legacy, running

SERVERS: Final = 20
ROUNDS: Final = 3
CALLS: Final = 50
LONG: Final = 20_000_000
MAX_DISCOVERY: Final = 1.3
MAX_BESIDE_MS: Final = 50.0
MAX_TOGETHER_MS: Final = 600.0
MAX_LONG_MS: Final = 300.0
MANY_SECONDS: Final = timedelta(minutes=5).total_seconds()


async def bare_session(stack: AsyncExitStack, config: ServerConfig) -> ClientSession:
    parameters = StdioServerParameters(command=config.command, args=list(config.args))
    read, write = await stack.enter_async_context(stdio_client(parameters))
    session = await stack.enter_async_context(
        ClientSession(read, write, read_timeout_seconds=MANY_SECONDS)
    )
    await session.initialize()
    await session.list_tools()
    return session


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def discovery() -> Row:
    """Connect and list 20 servers; ending them is not counted."""
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(ROUNDS):
        async with running({f"s{n}": legacy() for n in range(SERVERS)}, ready=False) as host:
            ours.append(await timed(lambda host=host: host.host.wait_ready(MANY_SECONDS)))
        floor.append(await _bare_discovery())
    ratio = median(ours) / median(floor)
    return {
        "name": "discovery",
        "unit": "ms",
        "ours": round(median(ours), 1),
        "floor": round(median(floor), 1),
        "floor_is": f"the bare SDK's client on {SERVERS} servers, as many at once",
        "ratio": round(ratio, 3),
        "spread": spread(ours),
        "goal": f"<= {MAX_DISCOVERY} x",
        "met": ratio <= MAX_DISCOVERY,
    }


async def _bare_discovery() -> float:
    at_once = asyncio.Semaphore(McpConfig().discovery_concurrency)
    listed: list[None] = []
    done = asyncio.Event()
    began = time.perf_counter()

    async def one() -> None:
        async with AsyncExitStack() as stack:
            async with at_once:
                await bare_session(stack, legacy())
            listed.append(None)
            if len(listed) == SERVERS:
                done.set()
            await done.wait()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(SERVERS):
            tasks.create_task(one(), name="bare")
        await done.wait()
        return (time.perf_counter() - began) * 1000


async def together(host: Running) -> Row:
    """Make four calls of half a second at the same time."""
    ours = [
        await timed(lambda: asyncio.gather(*(host.call("slow", "0.5") for _ in range(4))))
        for _ in range(ROUNDS)
    ]
    return _plain("calls_together", ours, MAX_TOGETHER_MS)


async def beside_a_person(host: Running) -> Row:
    """Call from one chat while the server's question waits in another; its connection is there."""
    waiting = Person(arguments(""))
    await host.call("order", chat="2")
    waiting.decides.clear()
    asked = asyncio.create_task(host.call("order", chat="1", person=waiting))
    await waiting.asked.wait()
    await host.call("echo", chat="2")
    ours = [await timed(lambda: host.call("echo", "x", chat="2")) for _ in range(CALLS)]
    waiting.decides.set()
    await asked
    return _plain("call_beside_question", ours, MAX_BESIDE_MS)


async def long_answer(host: Running) -> Row:
    """Read an answer of 20 MB from a process."""
    ours = [await timed(lambda: _long(host)) for _ in range(ROUNDS)]
    async with AsyncExitStack() as stack:
        session = await bare_session(stack, legacy())
        floor = await timed(lambda: session.call_tool("huge", {"text": str(LONG)}))
    row = _plain("long_answer", ours, MAX_LONG_MS)
    row["floor"] = round(floor, 1)
    row["floor_is"] = "the bare SDK's client on the same server, once"
    row["ratio"] = round(median(ours) / floor, 3)
    return row


async def _long(host: Running) -> None:
    result = await host.call("huge", str(LONG))
    assert result.state is CallState.OK


def _plain(name: str, ours: list[float], most: float) -> Row:
    return {
        "name": name,
        "unit": "ms",
        "ours": round(median(ours), 2),
        "floor": None,
        "p95_ms": round(percentile(ours, 0.95), 2),
        "spread": spread(ours),
        "goal": f"<= {most:g} ms",
        "met": median(ours) <= most,
    }


async def main() -> None:
    emit(await discovery())
    async with running(legacy(max_connections=2)) as host:
        await host.call("echo", "warm")
        emit(await together(host))
        emit(await beside_a_person(host))
        emit(await long_answer(host))


if __name__ == "__main__":
    asyncio.run(main())
