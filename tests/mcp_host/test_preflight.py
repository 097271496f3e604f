"""What is at a URL is looked at before it is spoken to: a web page is told at once."""

import time

import pytest

from gateway.domain.tools import CallState, ServerState
from mcp_host.server_config import ServerConfig
from tests.fakes.loopback_http import Answer, Handler, Loopback, Request, serve
from tests.fakes.mcp.http_server import HttpServer, mcp_server
from tests.mcp_host.hosting import legacy, running
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

PAGE = b"<!doctype html><title>Welcome</title>"


async def html(answer: Answer) -> None:
    await answer.whole(200, PAGE, media_type="text/html; charset=utf-8")


def shows_a_page(server: HttpServer) -> None:
    async def on_get(request: Request, answer: Answer) -> bool:
        if request.method != "GET":
            return False
        await html(answer)
        return True

    server.intercept = on_get


@requirement("case.mh1")
async def test_a_server_that_shows_browsers_a_page_is_a_server() -> None:
    async with mcp_server() as server:
        shows_a_page(server)
        async with running(ServerConfig(url=server.url)) as host:
            assert (await host.call("echo", "hi")).state is CallState.OK

    assert server.methods()[:3] == ["GET", "ping", "initialize"]


@requirement("case.mh1")
async def test_without_preflight_nothing_is_sent_ahead_of_the_handshake() -> None:
    async with mcp_server() as server:
        config = ServerConfig.model_validate({"url": server.url, "skip_preflight": True})
        async with running(config) as host:
            assert (await host.call("echo", "hi")).state is CallState.OK

    assert server.methods()[0] == "initialize"


@requirement("case.mh2")
async def test_a_web_page_is_told_by_its_type_and_address_in_less_than_two_seconds() -> None:
    def make(_: Loopback) -> Handler:
        async def handle(request: Request, answer: Answer) -> None:
            await html(answer)

        return handle

    async with serve(make) as page:
        url = f"http://127.0.0.1:{page.port}/welcome"
        began = time.monotonic()
        async with running(ServerConfig(url=f"{url}?key=secret"), ready=False) as host:
            host.host.connect()
            await eventually_async(lambda: host.status().state is ServerState.PARKED)
            took = time.monotonic() - began
            reason = host.status().reason

    assert reason == f"{url} answers with text/html: that is a web page, not an MCP server"
    assert took < 2


@requirement("case.mh17")
async def test_a_server_that_starts_after_the_gateway_is_found_by_the_next_probe() -> None:
    async with mcp_server() as server:
        port, url = server.loopback.port, server.url
    clock = ManualClock()
    async with running(ServerConfig(url=url), clock=clock, ready=False) as host:
        host.host.connect()
        for _ in range(3):
            await eventually_async(lambda: "cannot reach" in host.status().reason)
            clock.advance(5)
        while host.status().state is not ServerState.PARKED:
            clock.advance(5)
            await host.host.wait_ready(0.05)
        assert host.host.tools() == ()

        async with mcp_server(port=port):
            clock.advance(400)
            await host.host.probe()
            await eventually_async(lambda: host.status().state is ServerState.READY)
            assert (await host.call("echo", "here")).text == "here"


@requirement("case.ms12")
async def test_a_process_that_exits_at_its_start_leaves_a_good_remote_server_alone() -> None:
    async with mcp_server() as server:
        servers = {"bad": legacy("--exit-at-start", 3), "good": ServerConfig(url=server.url)}
        async with running(servers, ready=False) as host:
            host.host.connect()
            await eventually_async(lambda: "exited with code 3" in host.status("bad").reason)
            await eventually_async(lambda: host.status("good").state is ServerState.READY)

            assert (await host.call("echo", "hi", server="good")).text == "hi"
        assert server.methods().count("initialize") == 1
