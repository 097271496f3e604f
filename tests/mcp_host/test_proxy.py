"""Which proxy leads to a server, and servers that are reached through real ones."""

import asyncio
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from gateway.domain.tools import CallState, ServerState
from mcp_host.server_config import ServerConfig
from mcp_host.transports.proxy import BadProxy, proxy_for
from tests.fakes.mcp.http_server import mcp_server
from tests.mcp_host.hosting import running
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

PROXY = "http://proxy.example:3128"
NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@requirement("mcp.http.proxy")
@pytest.mark.parametrize(
    ("url", "environ", "expected"),
    [
        ("http://a/mcp", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://a/mcp", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://a/mcp", {"HTTP_PROXY": PROXY}, None),
        ("https://a/mcp", {"ALL_PROXY": PROXY}, PROXY),
        ("https://a/mcp", {"https_proxy": PROXY, "HTTPS_PROXY": "http://other:1"}, PROXY),
        ("https://a/mcp", {"HTTPS_PROXY": "proxy.example:3128"}, PROXY),
        ("https://a/mcp", {"https_proxy": "", "ALL_PROXY": ""}, None),
        ("https://a/mcp", {"ALL_PROXY": "socks://p:1080"}, "socks5://p:1080"),
        ("https://a/mcp", {"ALL_PROXY": "socks5h://p:1080"}, "socks5h://p:1080"),
    ],
)
def test_the_variables_lead_to_a_proxy(
    url: str, environ: dict[str, str], expected: str | None
) -> None:
    assert proxy_for(url, environ) == expected


@requirement("mcp.http.proxy")
@pytest.mark.parametrize(
    ("url", "exceptions", "direct"),
    [
        ("http://10.1.2.3/mcp", "10.0.0.0/8", True),
        ("http://11.1.2.3/mcp", "10.0.0.0/8", False),
        ("http://[fd00::1]/mcp", "fd00::/8", True),
        ("http://10.1.2.3/mcp", "10.1.2.3", True),
        ("http://mcp.example.org/mcp", "*.example.org", True),
        ("http://example.org/mcp", "*.example.org", False),
        ("http://mcp.example.org/mcp", ".example.org", True),
        ("http://mcp.example.org/mcp", "example.org", True),
        ("http://notexample.org/mcp", "example.org", False),
        ("http://MCP.Example.org/mcp", "mcp.example.ORG", True),
        ("http://a:8080/mcp", "a:8080", True),
        ("http://a:8081/mcp", "a:8080", False),
        ("http://a/mcp", "b, a", True),
        ("http://a/mcp", "*", True),
        ("http://10.1.2.3/mcp", "10.0.0.0/99", False),
        ("http://a/mcp", "", False),
    ],
)
def test_exceptions_are_names_globs_addresses_and_networks(
    url: str, exceptions: str, *, direct: bool
) -> None:
    environ = {"HTTP_PROXY": PROXY, "NO_PROXY": exceptions}

    assert proxy_for(url, environ) == (None if direct else PROXY)


@pytest.mark.parametrize(
    "value", ["ftp://p:1", "http://", "http://p:0", "http://p:99999", "http://a b:1", "::::"]
)
def test_what_is_no_proxy_is_refused_without_its_value(value: str) -> None:
    with pytest.raises(BadProxy, match="HTTPS_PROXY") as refused:
        proxy_for("https://a/mcp", {"HTTPS_PROXY": value})

    assert value not in str(refused.value)


@requirement("mcp.http.proxy")
async def test_a_server_is_reached_through_an_http_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a proxy is asked for has the whole address in its request line: the fake answers that.
    async with mcp_server() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.loopback.port}")
        async with running(ServerConfig(url="http://mcp.invalid/mcp")) as host:
            assert (await host.call("echo", "hi")).text == "hi"

    assert {request.path for request in proxy.requests} == {"http://mcp.invalid/mcp"}


@requirement("mcp.http.proxy")
async def test_a_server_is_reached_through_a_socks_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with mcp_server() as server, socks_to(server.loopback.port) as (port, asked):
        monkeypatch.setenv("ALL_PROXY", f"socks://127.0.0.1:{port}")
        async with running(ServerConfig(url="http://mcp.invalid:8080/mcp")) as host:
            assert (await host.call("echo", "hi")).text == "hi"

    assert set(asked) == {("mcp.invalid", 8080)}


@requirement("mcp.http.proxy")
async def test_a_bad_proxy_fails_the_servers_that_would_use_it_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "::::secret")
    async with mcp_server() as server:
        servers = {
            "bad": ServerConfig(url="https://mcp.invalid/mcp"),
            "good": ServerConfig(url=server.url),
        }
        async with running(servers) as host:
            assert host.status("bad").state is ServerState.PARKED
            assert host.status("bad").reason == "the proxy in HTTPS_PROXY is no URL of a proxy"
            result = await host.call("echo", "hi", server="good")
            assert result.state is CallState.OK


@asynccontextmanager
async def socks_to(port: int) -> AsyncGenerator[tuple[int, list[tuple[str, int]]]]:
    """Run a SOCKS5 proxy (RFC 1928) that leads everybody to one port here, and notes who was asked for."""
    asked: list[tuple[str, int]] = []
    tasks: set[asyncio.Task[object]] = set()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\x05\x00")
        _, _, _, kind = await reader.readexactly(4)
        assert kind == 3, "a name, to be looked up by the proxy"
        (length,) = await reader.readexactly(1)
        name = (await reader.readexactly(length)).decode()
        (number,) = struct.unpack("!H", await reader.readexactly(2))
        asked.append((name, number))
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(_pipe(reader, outer), _pipe(inner, writer))
        finally:
            outer.close()
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 16):
        target.write(data)
        await target.drain()
    target.close()
