"""`hermes mcp serve --http`: whom it answers, both protocol eras over it, and how it ends."""

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_host.bridge.address import Address
from tests.support.chat import HERMES, environment, hermes
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

TOKEN: Final = "a-token-of-the-tests"
HELLO: Final[Mapping[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
HEADERS: Final = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "authorization": f"Bearer {TOKEN}",
}


@contextmanager
def serving(home: Path, *args: str) -> Generator[tuple[str, "subprocess.Popen[str]"]]:
    """Run the bridge on a free port; return its URL and its process."""
    home.mkdir(mode=0o700, exist_ok=True)
    token = home / "token"
    token.touch(mode=0o600)
    token.write_text(f"{TOKEN}\n")
    with subprocess.Popen(
        [*HERMES, "mcp", "serve", "--http", "127.0.0.1:0", "--token-file", str(token), *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
        text=True,
    ) as process:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        try:
            assert found, process.stderr.read()
            yield found[0], process
        finally:
            if process.poll() is None:
                process.kill()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with serving(tmp_path_factory.mktemp("http") / "home") as (found, _):
        yield found


@asynccontextmanager
async def client(url: str, *, era: str) -> AsyncGenerator[Client]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=60)) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as connected,
    ):
        yield connected


@requirement("bridge.http")
@pytest.mark.anyio
@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_the_tools_are_the_same_over_http(url: str, era: str) -> None:
    async with client(url, era=era) as connected:
        tools = (await connected.list_tools()).tools
        waiting = asyncio.create_task(connected.call_tool("events_wait", {"timeout_ms": 60_000}))
        listed = await connected.call_tool("conversations_list", {})
        waiting.cancel()

    assert len(tools) == 10
    assert listed.structured_content == {"count": 0, "conversations": []}


@requirement("bridge.http")
@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:9999"}, 200),
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({"authorization": "Bearer \u00e9"}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:80", "origin": "http://evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
    ],
)
def test_only_a_client_with_the_token_that_means_this_host_is_answered(
    url: str, given: dict[str, str], status: int
) -> None:
    headers = [
        (name.encode(), value.encode("latin-1")) for name, value in {**HEADERS, **given}.items()
    ]

    answer = httpx2.post(url, headers=headers, json=HELLO, timeout=30)

    assert answer.status_code == status
    assert TOKEN not in answer.text
    assert (status == 401) == ("www-authenticate" in answer.headers)


@requirement("bridge.http", "bridge.exit")
@pytest.mark.anyio
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_it_ends_with_a_signal_whatever_waits(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with serving(tmp_path / "home") as (url, process):
        async with client(url, era="legacy") as connected:
            call = connected.call_tool("events_wait", {"timeout_ms": 300_000})
            waiting = asyncio.create_task(call)
            await connected.call_tool("events_poll", {})

            os.kill(process.pid, number)
            await eventually_async(lambda: process.poll() is not None, seconds=5)

            assert process.returncode == code
            waiting.cancel()
        assert process.stdout is not None
        assert process.stdout.read() == ""


@requirement("bridge.http")
@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--http", "127.0.0.1:0"], 2, "--token-file"),
        (["--token-file", "token"], 2, "--http"),
        (["--http", "nowhere", "--token-file", "token"], 2, "HOST:PORT"),
        (["--http", "::1:80", "--token-file", "token"], 2, "HOST:PORT"),
        (["--http", "127.0.0.1:0", "--token-file", "missing"], 1, "cannot be read"),
        (["--http", "127.0.0.1:0", "--token-file", "empty"], 1, "one token"),
        (["--http", "192.0.2.1:9", "--token-file", "token"], 1, "cannot listen"),
    ],
)
def test_what_it_cannot_serve_safely_it_does_not_serve(
    tmp_path: Path, args: list[str], code: int, said: str
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "empty").write_text("\n")

    done = hermes(tmp_path, "mcp", "serve", *args)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert TOKEN not in done.stderr


@requirement("bridge.http")
def test_an_address_is_loopback_unless_it_says_otherwise() -> None:
    assert Address.parse("8000") == Address.parse(":8000") == Address.parse("127.0.0.1:8000")
    assert Address.parse("[::1]:8000").host == "::1"
    wide = Address.parse("0.0.0.0:8000")
    assert wide.is_ours("192.0.2.7")
    assert not wide.is_ours("rebound.example")
    named = Address.parse("agents.example:8000")
    assert named.is_ours("agents.example")
    assert not named.is_ours("192.0.2.7")
