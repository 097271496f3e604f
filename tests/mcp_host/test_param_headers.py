"""Arguments that a 2026-07-28 server wants as headers too (MCP 2026-07-28, "Transports")."""

import pytest

from gateway.domain.canonical import canonical
from gateway.domain.tools import CallState
from mcp_host.server_config import ServerConfig
from tests.fakes.mcp.http_server import ECHO, Message, mcp_server
from tests.mcp_host.hosting import Person, call_of, running

pytestmark = pytest.mark.anyio


def wanting(name: str, header: str) -> Message:
    """A tool whose `region` travels as a header too."""
    region = {"type": "string", "x-mcp-header": header}
    return {
        **ECHO,
        "name": name,
        "inputSchema": {"type": "object", "properties": {"region": region}},
    }


async def test_an_argument_goes_out_as_the_header_its_tool_wants() -> None:
    async with mcp_server(modern=True, tools=[ECHO, wanting("deploy", "Region")]) as server:
        config = ServerConfig.model_validate({"url": server.url, "protocol": "stateless"})
        async with running(config) as host:
            for given in ({"region": "eu"}, {"region": "süd"}, {}):
                arguments = canonical(given)
                call = call_of("deploy")
                result = await host.host.call(call, Person(arguments))
                assert result.state is CallState.OK
            await host.call("echo", "hi")
        sent = [
            request.headers.get("mcp-param-region")
            for request in server.requests
            if request.body.get("method") == "tools/call"
        ]

    # What is no plain ASCII is wrapped, so that it cannot break the header.
    assert sent == ["eu", "=?base64?c8O8ZA==?=", None, None]


async def test_a_tool_whose_wish_is_invalid_is_left_out_and_no_other() -> None:
    tools = [ECHO, wanting("deploy", "not a header\r\n")]
    async with mcp_server(modern=True, tools=tools) as server:
        config = ServerConfig.model_validate({"url": server.url, "protocol": "stateless"})
        async with running(config) as host:
            assert [spec.name for spec in host.host.tools()] == ["echo"]
