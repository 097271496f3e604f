"""Sending and deciding through the bridge: what the gateway is asked, and what comes back."""

from pathlib import Path

import pytest

from gateway.domain.delivery import Origin
from gateway.domain.errors import GatewayNotRunning, GatewayRefused
from gateway.domain.question import Action, Surface
from mcp_host.bridge.config import BridgeConfig
from mcp_host.bridge.folders import default_folders
from mcp_host.bridge.problems import NOT_RUNNING
from store.readers import OpenReaders
from tests.mcp_host.bridge.bridging import Caller, Listening, bridge_over, calling
from tests.store.rows import Rows
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


@requirement("bridge.messages_send")
async def test_a_message_goes_as_it_is_with_its_key_and_its_origin(
    caller: Caller, gateway: Listening
) -> None:
    text = "MEDIA:/etc/passwd\n[[as_document]] **bold**"

    sent = await caller.ok("messages_send", target="telegram:42", message=text, idempotency_key="k")

    assert sent == {
        "success": True,
        "platform": "telegram",
        "chat_id": "42",
        "message_id": "7",
        "message_ids": ["7", "8"],
    }
    (request,) = gateway.sends
    assert (request.text, request.attachments) == (text, ())
    assert (request.idempotency_key, request.origin) == ("k", Origin.BRIDGE)


@requirement("bridge.messages_send")
async def test_files_are_sent_from_allowed_folders_alone(
    caller: Caller, gateway: Listening, tmp_path: Path
) -> None:
    allowed, outside = tmp_path / "out", tmp_path / "secret.txt"
    allowed.mkdir()
    (allowed / "a.txt").write_text("a")
    outside.write_text("s")
    (allowed / "link.txt").symlink_to(outside)

    async def code(path: str) -> str:
        said = await caller.failure(
            "messages_send", target="telegram:42", message="x", attachments=[path]
        )
        return said["code"]

    await caller.ok("messages_send", target="telegram:42", message="x", attachments=["out/a.txt"])
    assert gateway.sends[-1].attachments == (str(allowed / "a.txt"),)
    for path in (str(outside), "out/../secret.txt", "out/link.txt", str(tmp_path)):
        assert await code(path) == "not_allowed"
    for path in ("out/nothing.txt", "a\x00b"):
        assert await code(path) == "invalid_arguments"
    assert len(gateway.sends) == 1


def test_a_working_directory_that_is_everybodys_is_no_folder_to_send_from(tmp_path: Path) -> None:
    home, media = tmp_path / "home", tmp_path / "media"
    project = home / "project"
    project.mkdir(parents=True)

    assert default_folders(working=project, user_home=home, media=media) == (project, media)
    for wide in (home, tmp_path, Path("/")):
        assert default_folders(working=wide, user_home=home, media=media) == (media,)


@requirement("fault.f45")
async def test_a_decision_is_told_as_the_gateway_counts_it(
    caller: Caller, gateway: Listening
) -> None:
    settled = await caller.ok("permissions_respond", id="abcd", decision="allow-once", reason="ok")
    gateway.votes_needed = 1
    counted = await caller.ok("permissions_respond", id="abcd", decision="allow-once")

    assert settled == {"resolved": True, "approval_id": "abcd", "decision": "allow-once"}
    assert (counted["resolved"], counted["votes_needed"]) == (False, 1)
    assert gateway.decisions[0] == ("abcd", Action.ALLOW_ONCE, Surface.BRIDGE, "ok")


@requirement("fault.f45")
@pytest.mark.parametrize("code", ["expired", "already_resolved", "not_found", "not_answerable"])
async def test_what_was_not_decided_is_never_said_to_be(
    caller: Caller, gateway: Listening, code: str
) -> None:
    details = {"decision": "deny", "decided_by": "telegram:1", "decided_via": "button"}
    gateway.refusal = GatewayRefused(code, "it is over", details=details)

    said = await caller.failure("permissions_respond", id="abcd", decision="allow-once")

    assert said == {"error": "it is over", "code": code, **details}
    assert "resolved" not in said


async def test_without_a_gateway_it_is_said_what_to_do(caller: Caller, gateway: Listening) -> None:
    gateway.refusal = GatewayNotRunning("x")

    for tool, given in [
        ("messages_send", {"target": "telegram", "message": "x"}),
        ("permissions_respond", {"id": "abcd", "decision": "deny"}),
    ]:
        assert await caller.failure(tool, **given) == {
            "error": NOT_RUNNING,
            "code": "gateway_not_running",
        }


@requirement("bridge.channels_list", "case.ap14")
async def test_channels_are_filtered_and_only_those_that_may_be_sent_to(
    readers: OpenReaders, rows: Rows, tmp_path: Path
) -> None:
    for number in range(30):
        rows.channel(f"#room {number:02}", f"C{number}")
        rows.channel(f"Chat {number:02}", str(number), platform="telegram", chat_type="dm")

    async def names(caller: Caller, **given: object) -> list[str]:
        answer = await caller.ok("channels_list", **given)
        return [channel["name"] for channel in answer["channels"]]

    async with calling(bridge_over(readers, tmp_path)) as caller:
        assert len(await names(caller, platform="slack")) == 30
        assert await names(caller, search="ROOM 07") == ["#room 07"]
        assert await names(caller, search="C7") == ["#room 07"]
        (channel,) = (await caller.ok("channels_list", search="chat 03"))["channels"]
        assert channel == {
            "target": "telegram:3",
            "platform": "telegram",
            "name": "Chat 03",
            "chat_type": "dm",
        }
    narrow = BridgeConfig(targets=("slack:#room 0*", "telegram:29"))
    async with calling(bridge_over(readers, tmp_path, config=narrow)) as caller:
        everything = [f"#room 0{number}" for number in range(10)] + ["Chat 29"]
        assert await names(caller) == everything
        page = await caller.ok("channels_list", limit=4)
        rest = await names(caller, limit=200, before=page["next"])
        assert [channel["name"] for channel in page["channels"]] + rest == everything


@requirement("threat.s27")
@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_the_host_of_a_gateway_decides_nothing_through_a_bridge(
    readers: OpenReaders, gateway: Listening, tmp_path: Path, era: str
) -> None:
    bridge = bridge_over(readers, tmp_path, gateway=gateway)
    async with calling(bridge, era=era, name="hermes") as caller:
        said = await caller.failure("permissions_respond", id="abcd", decision="allow-once")
        assert (await caller.ok("permissions_list_open"))["count"] == 0

    assert said["code"] == "not_allowed"
    assert gateway.decisions == []
