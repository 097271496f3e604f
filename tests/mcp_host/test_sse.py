"""The older HTTP transport through the whole host, against a server on a real socket."""

from typing import Any

import pytest

from gateway.domain.tools import CallState, ServerState
from mcp_host.server_config import ServerConfig
from tests.fakes.mcp.http_server import ECHO
from tests.fakes.mcp.sse_server import SseServer, sse_server
from tests.mcp_host.hosting import running
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


def at(server: SseServer, **fields: Any) -> ServerConfig:
    return ServerConfig.model_validate({"url": server.url, "transport": "sse", **fields})


async def test_a_tool_is_called_by_the_address_the_stream_names() -> None:
    async with sse_server() as server, running(at(server, headers={"X-Who": "ana"})) as host:
        result = await host.call("echo", "hi")

        assert (result.state, result.text) == (CallState.OK, "hi")
        assert {request.path for request in server.posts()} == {server.endpoint}
        assert {request.headers["x-who"] for request in server.loopback.requests} == {"ana"}


async def test_what_the_server_says_unasked_arrives() -> None:
    async with sse_server() as server, running(at(server)) as host:
        server.mind.tools.append({**ECHO, "name": "fresh"})
        await server.tell({"method": "notifications/tools/list_changed"})

        await eventually_async(lambda: host.host.find("mcp__s__fresh") is not None)


async def test_a_stream_that_ends_is_opened_again_and_the_call_is_made() -> None:
    async with sse_server() as server, running(at(server)) as host:
        server.ended.set()
        await eventually_async(lambda: len(server.streams) == 2)
        await eventually_async(lambda: host.status().state is ServerState.READY)

        assert (await host.call("write", "once")).state is CallState.OK
        assert server.mind.calls == ["once"]


async def test_an_address_of_another_origin_gets_nothing_from_us() -> None:
    async with (
        sse_server() as elsewhere,
        sse_server(endpoint=f"http://127.0.0.1:{elsewhere.loopback.port}/mcp/messages") as server,
        running(at(server, headers={"Authorization": "Bearer secret"})) as host,
    ):
        status = host.status()

        assert status.state is ServerState.PARKED
        assert "another origin" in status.reason
        assert elsewhere.loopback.requests == []


@requirement("case.mh3")
async def test_an_sse_address_without_its_transport_is_spoken_to_the_older_way() -> None:
    async with sse_server() as server, running(ServerConfig(url=server.url)) as host:
        assert (await host.call("echo", "hi")).text == "hi"
        assert any("transport: sse" in note for note in host.status().notes)


@requirement("case.mh3")
async def test_without_a_look_at_it_first_the_error_names_the_key() -> None:
    async with sse_server() as server:
        config = ServerConfig.model_validate({"url": server.url, "skip_preflight": True})
        async with running(config, ready=False) as host:
            await eventually_async(lambda: bool(host.status().reason))

            assert 'may need "transport: sse"' in host.status().reason
