"""The ten tools as clients see them: what they say of themselves, and how they fail."""

import json
from pathlib import Path
from typing import Any, Final

import mcp_types as wire
import pytest
from mcp.shared.exceptions import MCPError

from gateway.domain.errors import GatewayNotRunning, GatewayRefused
from mcp_host.bridge.config import BridgeConfig
from store.readers import OpenReaders
from tests.mcp_host.bridge.bridging import Caller, Listening, bridge_over, calling
from tests.store.rows import Rows
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

READERS: Final = {
    "conversations_list",
    "conversation_get",
    "messages_read",
    "attachments_fetch",
    "events_poll",
    "events_wait",
    "channels_list",
    "permissions_list_open",
}
ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


def hints(tool: wire.Tool) -> tuple[bool | None, ...]:
    found = tool.annotations
    assert found is not None
    return (
        found.read_only_hint,
        found.destructive_hint,
        found.idempotent_hint,
        found.open_world_hint,
    )


@requirement("bridge.results")
@ERAS
async def test_ten_annotated_tools_return_what_their_schemas_say_and_the_same_as_text(
    readers: OpenReaders, rows: Rows, tmp_path: Path, era: str
) -> None:
    conversation = rows.conversation()
    message = rows.message(conversation)
    rows.question(conversation)
    rows.event("message", conversation, message_id=message)
    key = "agent:main:telegram:dm:100"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("conversations_list", {}),
        ("conversation_get", {"session_key": key}),
        ("messages_read", {"session_key": key}),
        ("attachments_fetch", {"session_key": key, "message_id": str(message)}),
        ("events_poll", {"replay": True}),
        ("events_wait", {"replay": True}),
        ("messages_send", {"target": "telegram:42", "message": "hi"}),
        ("channels_list", {}),
        ("permissions_list_open", {}),
        ("permissions_respond", {"id": "abcd", "decision": "deny"}),
    ]
    async with calling(bridge_over(readers, tmp_path), era=era) as caller:
        tools = {tool.name: tool for tool in await caller.tools()}
        assert list(tools) == [name for name, _ in calls]
        for name, tool in tools.items():
            assert tool.output_schema is not None
            if name in READERS:
                assert hints(tool)[0] is True
                assert hints(tool)[3] is False
        assert hints(tools["messages_send"]) == (False, False, False, True)
        assert hints(tools["permissions_respond"]) == (False, True, True, False)
        for name, arguments in calls:
            result = await caller.result(name, **arguments)
            (block,) = result.content
            assert isinstance(block, wire.TextContent)
            assert not result.is_error
            assert json.loads(block.text) == result.structured_content


@requirement("bridge.results")
@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("conversations_list", {"limit": "abc"}, "limit"),
        ("conversations_list", {"limit": True}, "limit"),
        ("conversations_list", {"limt": 5}, "limt"),
        ("conversations_list", {"before": "yesterday"}, "before"),
        ("channels_list", {"before": "nowhere:1"}, "before"),
        ("conversation_get", {}, "session_key"),
        (
            "messages_read",
            {"session_key": "agent:main:telegram:dm:100", "before_id": "x"},
            "before",
        ),
        ("permissions_respond", {"id": "abcd", "decision": "maybe"}, "decision"),
        ("events_poll", {"after_cursor": "7"}, "after_cursor"),
    ],
)
async def test_wrong_arguments_are_named(
    caller: Caller, rows: Rows, tool: str, arguments: dict[str, Any], named: str
) -> None:
    rows.conversation()

    said = await caller.failure(tool, **arguments)

    assert said["code"] == "invalid_arguments"
    assert named in said["error"]


@requirement("bridge.results")
async def test_what_goes_wrong_inside_fails_one_call_and_tells_nothing_of_it(
    caller: Caller, gateway: Listening
) -> None:
    gateway.refusal = GatewayNotRunning("/secret/home")
    said = await caller.failure("messages_send", target="telegram:42", message="hi")
    assert said["code"] == "gateway_not_running"
    assert "/secret" not in said["error"]

    gateway.refusal = GatewayRefused("ambiguous_target", "two", details={"candidates": ["a", "b"]})
    said = await caller.failure("messages_send", target="telegram:x", message="hi")
    assert said == {"error": "two", "code": "ambiguous_target", "candidates": ["a", "b"]}
    assert (await caller.ok("conversations_list"))["count"] == 0


async def test_a_tool_that_is_none_is_an_error_of_the_protocol(caller: Caller) -> None:
    with pytest.raises(MCPError, match="Unknown tool: messages_delete"):
        await caller.result("messages_delete")


async def test_null_is_as_good_as_left_out(caller: Caller) -> None:
    assert await caller.ok("conversations_list", platform=None, limit=None, before=None)


async def test_where_approvals_are_not_allowed_there_is_no_tool_for_them(
    readers: OpenReaders, tmp_path: Path
) -> None:
    bridge = bridge_over(readers, tmp_path, config=BridgeConfig(allow_approvals=False))
    async with calling(bridge) as caller:
        assert [tool.name for tool in await caller.tools()][-1] == "permissions_list_open"
        with pytest.raises(MCPError, match="Unknown tool"):
            await caller.result("permissions_respond", id="abcd", decision="deny")


@requirement("case.sv13")
async def test_the_description_of_sending_says_that_it_prompts_nobody(caller: Caller) -> None:
    (tool,) = [tool for tool in await caller.tools() if tool.name == "messages_send"]

    assert "bot's own message" in (tool.description or "")
    assert "does not prompt the agent" in (tool.description or "")
