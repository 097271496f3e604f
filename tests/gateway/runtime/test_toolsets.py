import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.tools import CallState, ServerState, ToolCall
from gateway.runtime.toolsets import may_have_toolset, narrowed, toolsets
from tests.fakes.tools import FakeTools, tool
from tests.mcp_host.hosting import Person
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


def two() -> FakeTools:
    return FakeTools(specs=[tool("add"), tool("list"), tool("pay", server="bank")])


@requirement("mcp.utilities.trust")
def test_a_toolset_is_what_a_server_with_tools_offers() -> None:
    host = two()
    host.connecting.append("empty")

    assert toolsets(host) == ("mcp-demo", "mcp-bank")


@pytest.mark.parametrize(
    ("state", "tools", "may"),
    [
        (ServerState.READY, 1, True),
        (ServerState.READY, 0, False),
        (ServerState.LAZY, 0, False),
        (ServerState.CONNECTING, 0, True),
        (ServerState.PARKED, 0, True),
        (ServerState.DISABLED, 0, False),
    ],
)
def test_a_server_still_to_be_listed_may_get_a_toolset(
    state: ServerState, tools: int, *, may: bool
) -> None:
    assert may_have_toolset(state, tools) is may


@requirement("cli.chat.toolsets.narrowed")
def test_only_the_wanted_tools_are_listed_found_and_searched() -> None:
    host = narrowed(two(), ["mcp-bank"])

    assert [spec.name for spec in host.tools()] == ["pay"]
    assert [status.name for status in host.servers()] == ["bank"]
    assert host.find("pay") is not None
    assert host.find("add") is None
    assert [hit.spec.name for hit in host.search("what", limit=2)] == ["pay"]


@requirement("cli.chat.toolsets.narrowed")
def test_what_is_left_out_takes_no_places_of_a_search() -> None:
    crowd = [tool(f"pay_{n}", server="crowd") for n in range(60)]
    host = narrowed(FakeTools(specs=[*crowd, tool("pay", server="bank")]), ["mcp-bank"])

    assert [hit.spec.alias for hit in host.search("pay", limit=5)] == ["mcp__bank__pay"]


@requirement("cli.chat.toolsets.narrowed")
async def test_servers_that_are_left_out_are_not_waited_for() -> None:
    tools = two()
    tools.connecting.append("slow")
    await narrowed(tools, ["mcp-bank"]).wait_ready(5)
    await narrowed(tools, ["mcp-bank", "mcp-slow"]).wait_ready(5, servers=["slow", "demo"])
    await narrowed(tools, []).wait_ready(5)

    assert tools.waited == [(5, ("bank",)), (5, ("slow",)), (5, None)]


async def test_a_call_of_what_is_left_out_is_refused() -> None:
    tools = two()
    host = narrowed(tools, ["mcp-bank"])
    empty = CanonicalJson("{}")

    results = [
        await host.call(
            ToolCall(
                id="call",
                alias=alias,
                arguments=empty,
                place=Place(platform="terminal", chat="local", chat_type=ChatType.DM),
                requester=Actor(platform="terminal", id="local"),
            ),
            Person(empty),
        )
        for alias in ("mcp__demo__add", "mcp__bank__pay")
    ]

    assert [result.state for result in results] == [CallState.REFUSED, CallState.OK]
    assert [name for name, _ in tools.ran] == ["pay"]


def test_none_wanted_is_all() -> None:
    host = two()

    assert narrowed(host, ()) is host
