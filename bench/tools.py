"""What many tools cost: to register and index 3,300, to search them, and to start 100 lazy servers."""

import asyncio
import json
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.report import Row, emit, median, percentile, spread
from gateway.domain.tools import ServerState
from gateway.runtime.clock import SystemClock
from mcp_host.catalog import Catalog, ListedTool
from mcp_host.host import open_host
from mcp_host.registry import Registry, register
from mcp_host.schema_cache import Known, SchemaCache, cache_key
from mcp_host.server_config import McpConfig, ServerConfig

TOOLS: Final = 3_300
SERVERS: Final = 100
TOOLS_EACH: Final = 10
ROUNDS: Final = 7
SEARCHES: Final = 300
MAX_REGISTER_S: Final = 1.0
MAX_SEARCH_MS: Final = 5.0
MAX_START_MS: Final = 100.0

VERBS: Final = (
    "list",
    "read",
    "create",
    "update",
    "delete",
    "find",
    "export",
    "share",
    "move",
    "tag",
)
NOUNS: Final = (
    "invoice",
    "ticket",
    "page",
    "branch",
    "comment",
    "person",
    "calendar",
    "file",
    "note",
)
CONFIG: Final = ServerConfig(command="never-started", lazy=True)


def tool(number: int) -> ListedTool:
    verb, noun = VERBS[number % len(VERBS)], NOUNS[number // len(VERBS) % len(NOUNS)]
    return ListedTool(
        name=f"{verb}_{noun}_{number}",
        title=f"{verb.title()} {noun}",
        description=f"{verb.title()}s a {noun} of workspace {number % 97}, by its id or its name.",
        input_schema={
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": f"The id of the {noun}."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            },
            "required": ["id"],
        },
    )


def catalog(first: int, count: int) -> Catalog:
    return Catalog(tools=tuple(tool(number) for number in range(first, first + count)))


def registered(offered: Catalog) -> tuple[Registry, float]:
    """Return the registry of one server once it can be searched, and the seconds it took."""
    began = time.perf_counter()
    registry = Registry([register("big", CONFIG, offered)])
    assert registry.search("delete invoice")
    return registry, time.perf_counter() - began


def indexed(offered: Catalog) -> tuple[sqlite3.Connection, float]:
    """Do what nothing but SQLite needs for the same texts."""
    began = time.perf_counter()
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE tool USING fts5(name, title, description)")
    database.executemany(
        "INSERT INTO tool VALUES (?, ?, ?)",
        ((one.name.replace("_", " "), one.title, one.description) for one in offered.tools),
    )
    assert _match(database, "delete invoice")
    return database, time.perf_counter() - began


def _match(database: sqlite3.Connection, query: str) -> list[object]:
    terms = " OR ".join(query.split())
    statement = "SELECT rowid FROM tool WHERE tool MATCH ? ORDER BY rank LIMIT 5"
    return database.execute(statement, (terms,)).fetchall()


def registry_rows() -> list[Row]:
    offered = catalog(0, TOOLS)
    ours: list[float] = []
    floor: list[float] = []
    searches: list[float] = []
    bare: list[float] = []
    for _ in range(ROUNDS):
        registry, took = registered(offered)
        ours.append(took)
        database, took = indexed(offered)
        floor.append(took)
        for number in range(SEARCHES // ROUNDS):
            query = f"{VERBS[number % len(VERBS)]} {NOUNS[number % len(NOUNS)]} by name"
            began = time.perf_counter()
            found = registry.search(query)
            searches.append((time.perf_counter() - began) * 1000)
            assert found
            began = time.perf_counter()
            assert _match(database, query)
            bare.append((time.perf_counter() - began) * 1000)
        registry.close()
        database.close()
    return [
        {
            "name": "tool_registry",
            "unit": "s",
            "ours": round(median(ours), 3),
            "floor": round(median(floor), 3),
            "floor_is": f"an FTS5 table of the same {TOOLS} texts",
            "ratio": round(median(ours) / median(floor), 2),
            "spread": spread(ours),
            "goal": f"<= {MAX_REGISTER_S:g} s for {TOOLS} tools",
            "met": median(ours) <= MAX_REGISTER_S,
        },
        {
            "name": "tool_search",
            "unit": "ms",
            "ours": round(median(searches), 2),
            "floor": round(median(bare), 2),
            "floor_is": "the bare query of that table",
            "ratio": round(median(searches) / median(bare), 2),
            "p50_ms": round(median(searches), 2),
            "p95_ms": round(percentile(searches, 0.95), 2),
            "goal": f"<= {MAX_SEARCH_MS:g} ms",
            "met": percentile(searches, 0.95) <= MAX_SEARCH_MS,
        },
    ]


def remembered(path: Path, servers: dict[str, ServerConfig]) -> None:
    """Write the cache an earlier process would have left."""
    cache = SchemaCache(path)
    for number, (name, config) in enumerate(servers.items()):
        known = Known(catalog=catalog(number * TOOLS_EACH, TOOLS_EACH), era="legacy")
        cache.keep(name, cache_key(config), known)
    cache.write()


async def started(servers: dict[str, ServerConfig], path: Path) -> float:
    """Return the milliseconds until the tools of every server are known."""
    began = time.perf_counter()
    async with open_host(
        servers,
        mcp=McpConfig(),
        clock=SystemClock(),
        stderr_log=None,
        version="0",
        reload=lambda: servers,
        schema_cache=path,
    ) as host:
        await host.wait_ready(60)
        took = (time.perf_counter() - began) * 1000
        assert len(host.tools()) == len(servers) * TOOLS_EACH
        assert all(status.state is ServerState.LAZY for status in host.servers())
    return took


def lazy_row() -> Row:
    servers = {f"server{number}": CONFIG for number in range(SERVERS)}
    ours: list[float] = []
    floor: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schemas.json"
        remembered(path, servers)
        for _ in range(ROUNDS):
            ours.append(asyncio.run(started(servers, path)))
            began = time.perf_counter()
            json.loads(path.read_bytes())
            floor.append((time.perf_counter() - began) * 1000)
    return {
        "name": "lazy_start",
        "unit": "ms",
        "ours": round(median(ours), 1),
        "floor": round(median(floor), 1),
        "floor_is": "reading what was remembered of them",
        "ratio": round(median(ours) / median(floor), 2),
        "spread": spread(ours),
        "goal": f"<= {MAX_START_MS:g} ms for {SERVERS} lazy servers",
        "met": median(ours) <= MAX_START_MS,
    }


def main() -> None:
    for row in (*registry_rows(), lazy_row()):
        emit(row)


if __name__ == "__main__":
    main()
