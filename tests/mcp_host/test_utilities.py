"""Our own tools for a server's resources and prompts: when they are there, and what they do."""

import asyncio
import json
from typing import Any

import pytest

from gateway.domain.canonical import canonical
from gateway.domain.tools import CallState, ToolResult
from gateway.runtime.toolsets import toolsets
from mcp_host.catalog import Catalog, Stock
from mcp_host.server_config import ServerConfig, ToolsConfig
from mcp_host.utilities import utilities_of
from tests.fakes.mcp.http_server import ECHO, HttpServer, Message, mcp_server
from tests.mcp_host.hosting import Person, Running, call_of, running
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

RESOURCES = {"list_resources", "read_resource"}
PROMPTS = {"list_prompts", "get_prompt"}
BOTH: dict[str, Message] = {"resources": {"listChanged": True}, "prompts": {}}
NOTE: Message = {"uri": "note:1", "name": "milk"}
NO_RESOURCES: dict[str, Message] = {
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
}
NO_PROMPTS: dict[str, Message] = {"prompts/list": {"prompts": []}}


def at(server: HttpServer, **tools: object) -> ServerConfig:
    return ServerConfig.model_validate({"url": server.url, "trust": "untrusted", "tools": tools})


def names(host: Running) -> set[str]:
    return {spec.name for spec in host.host.tools()}


async def use(host: Running, tool: str, **given: object) -> ToolResult:
    """Call a tool with nobody to ask."""
    arguments = canonical(given)
    call = call_of(tool)
    person = Person(arguments, approval=AssertionError("nobody was to be asked"))
    return await host.host.call(call, person)


@requirement("mcp.utilities.conditions")
@pytest.mark.parametrize(
    ("wanted", "stock", "why"),
    [
        (None, Stock.FULL, None),
        (None, Stock.EMPTY, "the server has no resources"),
        (None, Stock.NONE, "the server offers no resources"),
        (True, Stock.FULL, None),
        (True, Stock.EMPTY, None),
        (True, Stock.NONE, "the server offers no resources"),
        (False, Stock.FULL, "tools.resources is switched off"),
    ],
)
def test_a_utility_needs_the_entry_the_capability_and_something_in_the_list(
    wanted: bool | None, stock: Stock, why: str | None
) -> None:
    found = utilities_of(ToolsConfig(resources=wanted), Catalog(resources=stock))

    assert {tool.name for tool in found.tools} == (RESOURCES if why is None else set())
    assert {found.off.get(name) for name in RESOURCES} == {why}


@requirement("mcp.utilities.conditions")
@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ({**NO_RESOURCES, **NO_PROMPTS}, set[str]()),
        ({**NO_RESOURCES, **NO_PROMPTS, "resources/list": {"resources": [NOTE]}}, RESOURCES),
        (
            {
                **NO_RESOURCES,
                **NO_PROMPTS,
                "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "n:{id}"}]},
            },
            RESOURCES,
        ),
        ({**NO_RESOURCES, "prompts/list": {"prompts": [{"name": "greet"}]}}, PROMPTS),
        # A list that cannot be read may have something in it.
        ({}, RESOURCES | PROMPTS),
    ],
    ids=["empty", "a resource", "a template", "a prompt", "unreadable"],
)
async def test_what_a_server_has_decides(results: dict[str, Message], expected: set[str]) -> None:
    async with (
        mcp_server(offers=BOTH, results=results) as server,
        running(at(server)) as host,
    ):
        assert names(host) & (RESOURCES | PROMPTS) == expected
        off = host.status().selection.utilities_off
        assert set(off) == (RESOURCES | PROMPTS) - expected


@requirement("mcp.utilities.conditions")
async def test_what_is_there_is_looked_at_again_when_a_list_changes() -> None:
    results: dict[str, Message] = {**NO_RESOURCES, **NO_PROMPTS}
    async with (
        mcp_server(offers=BOTH, results=results, news=asyncio.Queue()) as server,
        running(at(server)) as host,
    ):
        assert server.news is not None
        await server.listening.wait()
        results["resources/list"] = {"resources": [NOTE]}
        server.news.put_nowait({"method": "notifications/resources/list_changed"})
        await eventually_async(lambda: names(host) >= RESOURCES)

        results["resources/list"] = {"resources": []}
        server.news.put_nowait({"method": "notifications/resources/list_changed"})
        await eventually_async(lambda: not names(host) & RESOURCES)


@requirement("mcp.utilities.trust")
async def test_a_utility_reads_on_an_untrusted_server_without_asking() -> None:
    results: dict[str, Message] = {
        **NO_RESOURCES,
        "resources/list": {"resources": [NOTE]},
        "resources/read": {"contents": [{"uri": "note:1", "text": "two litres"}]},
        "prompts/list": {"prompts": [{"name": "greet"}]},
        "prompts/get": {
            "description": "A greeting.",
            "messages": [{"role": "user", "content": {"type": "text", "text": "Hello Ana"}}],
        },
    }
    async with mcp_server(offers=BOTH, results=results) as server, running(at(server)) as host:
        listed = await use(host, "list_resources")
        read = await use(host, "read_resource", uri="note:1")
        prompts = await use(host, "list_prompts")
        prompt = await use(host, "get_prompt", name="greet", arguments={"who": "Ana", "n": 2})
        unclear = await use(host, "read_resource")
        (asked,) = [
            request.body
            for request in server.requests
            if request.body.get("method") == "prompts/get"
        ]

    assert json.loads(listed.text)["resources"] == [NOTE]
    assert "two litres" in read.text
    assert json.loads(prompts.text)["prompts"] == [{"name": "greet"}]
    assert "A greeting." in prompt.text
    assert "Hello Ana" in prompt.text
    # Prompts take texts alone.
    assert params(asked) == {"name": "greet", "arguments": {"who": "Ana", "n": "2"}}
    assert (unclear.state, "needs a text" in unclear.text) == (CallState.ERROR, True)


def params(body: Any) -> Message:
    found: Message = body["params"]
    return {name: value for name, value in found.items() if name != "_meta"}


@requirement("mcp.names.native_beats_utility")
async def test_a_tool_of_the_server_keeps_its_name_and_our_own_yields() -> None:
    native = {**ECHO, "name": "list_resources"}
    results: dict[str, Message] = {"resources/list": {"resources": [NOTE]}}
    async with (
        mcp_server(offers=BOTH, results=results, tools=[ECHO, native]) as server,
        running(at(server)) as host,
    ):
        result = await use(host, "list_resources", text="from the server")

        assert result.text == "from the server"
        assert server.calls == ["from the server"]
        off = host.status().selection.utilities_off
        assert off["list_resources"] == "the server has a tool of that name"
        assert "read_resource" in names(host)


@requirement("mcp.utilities.trust")
async def test_a_server_of_which_nothing_is_registered_has_no_toolset() -> None:
    results: dict[str, Message] = {**NO_RESOURCES, "resources/list": {"resources": [NOTE]}}
    async with (
        mcp_server(offers=BOTH, results=results) as server,
        running(
            {
                "empty": at(server, include=[], resources=False, prompts=False),
                "docs": at(server, include=[], prompts=False),
            }
        ) as host,
    ):
        assert names(host) == RESOURCES
        assert toolsets(host.host) == ("mcp-docs",)
