"""`hermes mcp serve` beside its floors: how soon it answers, what a read costs, what it takes idle.

The store has 1,000 conversations of 100 messages. A read's floor is its statement in the standard
library's sqlite3, in this process; a call of nothing on a bare SDK server is a row of its own.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bench.agent import Agent
from bench.processes import memory_of, seconds_of
from bench.report import Row, emit, median, percentile, spread
from bench.seed import FIRST_CHAT
from store.sql.reads import channels, conversations, events, questions
from tests.support.chat import environment

CONVERSATIONS: Final = 1_000
MESSAGES: Final = 100
KEY: Final = f"agent:main:telegram:dm:{FIRST_CHAT}"
"""The first conversation that was seeded; its session, its messages and it itself have the number 1."""
STARTS: Final = 9
CALLS: Final = 300
WATCH_SECONDS: Final = 20.0
NO_BOUND: Final = 2**63 - 1
HERMES: Final = str(Path(sys.executable).with_name("hermes"))
SERVE: Final = (HERMES, "mcp", "serve")

MAX_START: Final = 1.3
MAX_READ_MS: Final = 2.0
MAX_MEMORY: Final = 1.2
MAX_IDLE: Final = 0.1
"""Percent of one core."""

PEER: Final = "HERMES_PEER_VENV"
BARE: Final = """
import asyncio
import mcp_types as wire
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def listed(ctx, params):
    return wire.ListToolsResult(tools=[wire.Tool(name="nothing", input_schema={"type": "object"})])

async def called(ctx, params):
    return wire.CallToolResult(content=[wire.TextContent(text="{}")], structured_content={})

async def main():
    server = Server("bare", version="1", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

asyncio.run(main())
"""
"""A server that is nothing but the SDK's."""

Query = tuple[str, Mapping[str, object]]
Tool = tuple[str, Mapping[str, object], Sequence[Query]]

CONVERSATION: Final = conversations.CONVERSATIONS + conversations.AND_KEY
TOOLS: Final[Sequence[Tool]] = (
    (
        "conversations_list",
        {},
        [
            (
                conversations.CONVERSATIONS + conversations.AND_BEFORE + conversations.NEWEST,
                {"at": NO_BOUND, "id": NO_BOUND, "limit": 51},
            )
        ],
    ),
    ("conversation_get", {"session_key": KEY}, [(CONVERSATION, {"session_key": KEY})]),
    (
        "messages_read",
        {"session_key": KEY},
        [
            (CONVERSATION, {"session_key": KEY}),
            (
                conversations.MESSAGES_BEFORE,
                {"session": 1, "before": NO_BOUND, "limit": 51},
            ),
        ],
    ),
    (
        "attachments_fetch",
        {"session_key": KEY, "message_id": "1"},
        [
            (CONVERSATION, {"session_key": KEY}),
            (conversations.MESSAGE, {"conversation": 1, "message": 1}),
        ],
    ),
    (
        "events_poll",
        {"after_cursor": 1},
        [(events.EVENT_BOUNDS, {}), (events.EVENTS, {"cursor": 1, "limit": 20})],
    ),
    (
        "channels_list",
        {},
        [(channels.CHANNELS + channels.BY_NAME, {"limit": 51})],
    ),
    (
        "permissions_list_open",
        {},
        [(questions.QUESTIONS_OPEN, {"now": 0, "limit": 500})],
    ),
)


def bridge_of(home: Path) -> Agent:
    return Agent(SERVE, env=environment(home))


def starts(home: Path) -> Row:
    """Return how long it is until `initialize` is answered, against an import of the SDK."""
    ours: list[float] = []
    floor: list[float] = []
    for number in range(STARTS + 1):
        with bridge_of(home) as agent:
            took = agent.initialized
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import mcp"], check=True)
        imported = time.perf_counter() - began
        if number:
            ours.append(took)
            floor.append(imported)
    ratio = median(ours) / median(floor)
    return {
        "name": "bridge_start",
        "unit": "s",
        "ours": round(median(ours), 3),
        "floor": round(median(floor), 3),
        "floor_is": "python -c 'import mcp'",
        "ratio": round(ratio, 2),
        "spread": spread(ours),
        "goal": f"<= {MAX_START} x",
        "met": ratio <= MAX_START,
    }


def peer_starts(venv: Path, *, ours: float) -> Row:
    """Return how long the nearest system takes to answer the same, on a home of its own."""
    took: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        command = (str(venv / "bin" / "hermes"), "mcp", "serve")
        for number in range(STARTS + 1):
            with Agent(command, env={"HERMES_HOME": home, "HOME": home}) as agent:
                if number:
                    took.append(agent.initialized)
    return {
        "name": "bridge_start peer",
        "unit": "s",
        "ours": ours,
        "floor": round(median(took), 3),
        "floor_is": "hermes-agent's own `mcp serve`",
        "ratio": round(ours / median(took), 2),
        "spread": spread(took),
        "goal": "a separate row, no goal",
        "met": None,
    }


def timed(run: Callable[[], object], *, times: int) -> list[float]:
    """Return the milliseconds of each run."""
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        took.append((time.perf_counter() - began) * 1000)
    return took


def reads(agent: Agent, database: sqlite3.Connection, *, times: int = CALLS) -> Sequence[Row]:
    """Return what each reading tool costs."""
    rows: list[Row] = []
    for name, arguments, queries in TOOLS:
        _, answer = agent.call(name, arguments)
        assert "error" not in answer, answer
        took = [agent.call(name, arguments)[0] * 1000 for _ in range(times)]
        floor = timed(
            lambda queries=queries: [_all(database, query) for query in queries], times=times
        )
        rows.append(
            {
                "name": f"bridge_read {name}",
                "unit": "ms",
                "ours": round(median(took), 2),
                "floor": round(median(floor), 2),
                "floor_is": "the same statements in sqlite3",
                "ratio": round(median(took) / median(floor), 1),
                "p50_ms": round(median(took), 2),
                "p95_ms": round(percentile(took, 0.95), 2),
                "goal": f"p50 <= {MAX_READ_MS:g} ms",
                "met": median(took) <= MAX_READ_MS,
            }
        )
    return rows


def _all(database: sqlite3.Connection, query: Query) -> list[Any]:
    statement, values = query
    return database.execute(statement, values).fetchall()


def bare_call(bare: Agent) -> Row:
    """Return what a call costs in which nothing is done."""
    took = [bare.call("nothing", {})[0] * 1000 for _ in range(CALLS)]
    return {
        "name": "bridge_read bare_sdk_call",
        "unit": "ms",
        "ours": round(median(took), 2),
        "floor": None,
        "p50_ms": round(median(took), 2),
        "p95_ms": round(percentile(took, 0.95), 2),
        "goal": "a separate row, no goal",
        "met": None,
    }


def memory(agent: Agent, bare: Agent) -> Row:
    """Return what it takes once it was used, against a server that is nothing but the SDK's."""
    agent.ask("tools/list", {})
    bare.ask("tools/list", {})
    ours, floor = memory_of(agent.process.pid), memory_of(bare.process.pid)
    return {
        "name": "bridge_memory",
        "unit": "MiB",
        "ours": round(ours, 1),
        "floor": round(floor, 1),
        "floor_is": "a bare SDK stdio server after as many calls",
        "ratio": round(ours / floor, 2),
        "goal": f"<= {MAX_MEMORY} x",
        "met": ours / floor <= MAX_MEMORY,
    }


def idle(agent: Agent) -> Row:
    """Return what it takes while nothing happens and a call waits."""
    agent.start("tools/call", {"name": "events_wait", "arguments": {"timeout_ms": 300_000}})
    time.sleep(1.0)
    before = seconds_of(agent.process.pid)
    time.sleep(WATCH_SECONDS)
    percent = (seconds_of(agent.process.pid) - before) / WATCH_SECONDS * 100
    return {
        "name": "bridge_idle",
        "unit": "% of a core",
        "ours": round(percent, 3),
        "floor": None,
        "goal": f"<= {MAX_IDLE} %",
        "met": percent <= MAX_IDLE,
    }


def seeded(home: Path) -> None:
    """Fill a store; the sizes are those of the goals."""
    numbers = ("--conversations", str(CONVERSATIONS), "--messages", str(MESSAGES))
    subprocess.run(
        [sys.executable, "-m", "bench.seed", "--home", str(home), *numbers],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        seeded(home)
        started = starts(home)
        emit(started)
        if os.environ.get(PEER):
            emit(peer_starts(Path(os.environ[PEER]), ours=started.get("ours", 0.0)))
        uri = f"file:{home / 'state.db'}?mode=ro"
        with (
            bridge_of(home) as agent,
            Agent([sys.executable, "-c", BARE], env=dict(os.environ)) as bare,
            closing(sqlite3.connect(uri, uri=True)) as database,
        ):
            for row in (*reads(agent, database), bare_call(bare)):
                emit(row)
            emit(memory(agent, bare))
            emit(idle(agent))


if __name__ == "__main__":
    main()
