"""Servers whose tools are known before they run: from the cache of an earlier process."""

import json
from pathlib import Path

import pytest

from gateway.domain.tools import CallState, ServerState
from mcp_host.schema_cache import cache_key
from mcp_host.server_config import ServerConfig
from tests.mcp_host.hosting import Running, legacy, lines_of, modern, running
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "schemas.json"


def counted(tmp_path: Path, *options: object, **fields: object) -> ServerConfig:
    """An entry whose server writes down each of its starts."""
    return legacy("--starts", tmp_path / "starts", *options, **fields)


def starts(tmp_path: Path) -> int:
    return len(lines_of(tmp_path / "starts"))


def names(host: Running) -> list[str]:
    return [spec.name for spec in host.host.tools()]


@requirement("mcp.lazy.cache")
async def test_a_lazy_server_runs_once_to_be_known_and_then_on_its_first_call(
    tmp_path: Path, cache: Path
) -> None:
    entry = counted(tmp_path, lazy=True)
    async with running(entry, schema_cache=cache) as host:
        first = names(host)
        assert (host.status().state, starts(tmp_path)) == (ServerState.READY, 1)

    async with running(entry, schema_cache=cache) as host:
        assert (host.status().state, host.status().lazy) == (ServerState.LAZY, True)
        assert (names(host), host.status().tools) == (first, len(first))
        assert host.host.search("echo", limit=3)
        assert starts(tmp_path) == 1

        result = await host.call("echo", "hi")

        assert (result.state, host.status().state) == (CallState.OK, ServerState.READY)
        assert starts(tmp_path) == 2


@requirement("mcp.lazy.cache")
async def test_a_reload_leaves_a_lazy_server_asleep_unless_it_is_named(
    tmp_path: Path, cache: Path
) -> None:
    entry = counted(tmp_path, lazy=True)
    async with running(entry, schema_cache=cache):
        pass

    async with running(entry, schema_cache=cache) as host:
        await host.host.reload()
        assert (host.status().state, starts(tmp_path)) == (ServerState.LAZY, 1)

        await host.host.reload("s")
        assert (host.status().state, starts(tmp_path)) == (ServerState.READY, 2)


@requirement("mcp.lazy.cache_key")
@pytest.mark.parametrize(
    "change",
    [
        {"env": {"WHO": "ben"}},
        {"cwd": "/"},
        {"trust": "untrusted"},
        {"timeout": 7},
        {"tools": {"exclude": ["crash"]}},
    ],
)
async def test_another_entry_never_uses_what_was_remembered(
    tmp_path: Path, cache: Path, change: dict[str, object]
) -> None:
    async with running(counted(tmp_path, lazy=True), schema_cache=cache):
        pass

    async with running(counted(tmp_path, lazy=True, **change), schema_cache=cache) as host:
        assert (host.status().state, starts(tmp_path)) == (ServerState.READY, 2)


@requirement("mcp.lazy.cache_key")
def test_who_we_are_to_a_server_is_part_of_the_key(tmp_path: Path) -> None:
    url = {"url": "https://mcp.example/mcp"}
    entries = [
        ServerConfig.model_validate(fields)
        for fields in (
            url,
            {**url, "headers": {"Authorization": "Bearer a"}},
            {**url, "headers": {"Authorization": "Bearer b"}},
            {**url, "client_cert": str(tmp_path / "ana.pem")},
            {**url, "client_cert": str(tmp_path / "ben.pem")},
            {**url, "identity_header": {"name": "X-Who", "value": "ana"}},
            {**url, "identity_header": {"name": "X-Who", "value": "ben"}},
        )
    ]

    keys = {cache_key(entry) for entry in entries}
    keys |= {cache_key(entries[0], identity=who) for who in ("ana", "ben")}

    assert len(keys) == len(entries) + 2


@requirement("mcp.start.warm_cache")
async def test_tools_are_known_at_once_while_their_server_still_connects(cache: Path) -> None:
    async with running({"old": legacy(), "new": modern()}, schema_cache=cache) as host:
        first = names(host)

    async with running({"old": legacy(), "new": modern()}, schema_cache=cache, ready=False) as host:
        assert [status.state for status in host.host.servers()] == [ServerState.CONNECTING] * 2
        assert names(host) == first
        await host.host.wait_ready(0)
        assert names(host) == first
        await host.host.wait_started(30)
        assert [status.state for status in host.host.servers()] == [ServerState.READY] * 2

        result = await host.call("echo", "hi", server="old")
        assert result.state is CallState.OK


@requirement("mcp.start.warm_cache")
async def test_what_a_server_offers_by_now_takes_the_place_of_what_was_remembered(
    tmp_path: Path, cache: Path
) -> None:
    described = tmp_path / "described.json"
    described.write_text(json.dumps({"echo": "Says it once."}))
    entry = legacy("--describe", described)
    async with running(entry, schema_cache=cache):
        pass
    described.write_text(json.dumps({"echo": "Says it twice."}))

    def said(host: Running) -> str:
        spec = host.host.find("mcp__s__echo")
        assert spec is not None
        return spec.description

    async with running(entry, schema_cache=cache, ready=False) as host:
        assert said(host) == "Says it once."
        host.host.connect()
        await eventually_async(lambda: said(host) == "Says it twice.")

    async with running(entry, schema_cache=cache, ready=False) as host:
        assert said(host) == "Says it twice."


@requirement("mcp.lazy.cache_key")
async def test_a_server_that_was_removed_is_remembered_no_longer(
    tmp_path: Path, cache: Path
) -> None:
    entry = counted(tmp_path, lazy=True)
    async with running({"s": entry, "t": legacy()}, schema_cache=cache) as host:
        del host.wanted["s"]
        await host.host.reload()

    async with running({"s": entry, "t": legacy()}, schema_cache=cache) as host:
        assert (host.status().state, starts(tmp_path)) == (ServerState.READY, 2)


@requirement("mcp.start.session_never_spawns")
async def test_many_conversations_share_the_one_process_of_a_server(tmp_path: Path) -> None:
    lists = tmp_path / "lists"
    async with running(counted(tmp_path, "--lists", lists)) as host:
        for _ in range(20):
            # What a conversation does when it begins: it waits for the tools and looks them up.
            await host.host.wait_ready(5)
            assert host.host.tools()
            assert host.host.search("echo", limit=3)
            assert (await host.call("echo", "hi")).state is CallState.OK

    assert (starts(tmp_path), len(lines_of(lists))) == (1, 1)
