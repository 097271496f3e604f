"""The bridge beside a real gateway on Telegram: sends, decisions, and a gateway that dies and comes back."""

import json
import sys
from collections.abc import Generator
from typing import Any, Final

import pytest

from tests.e2e.house import House
from tests.e2e.on_telegram import ANNA, asked, configure, sent, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.support.bridge import BridgeProcess
from tests.support.chat import hermes
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

CLAUDE: Final = {"name": "claude-code", "version": "2"}
KEY: Final = f"agent:main:telegram:dm:{ANNA}"


@pytest.fixture(scope="module")
def service() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        yield running


@pytest.fixture
def telegram(house: House, service: TelegramProcess) -> House:
    """A home on Telegram that knows Anna, with one gated tool."""
    house.serve()
    configure(house, service)
    return house


def said(service: TelegramProcess, text: str) -> int:
    """Let Anna say something, and wait for the answer; return the id of her message."""
    message: int = service.do("say", chat=ANNA, text=text)["id"]
    service.do("wait", chat=ANNA, after=message)
    return message


def shown(service: TelegramProcess, message: int) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [item for item in service.do("messages", chat=ANNA) if item["id"] == message]
    return found


def events(bridge: BridgeProcess, cursor: int) -> tuple[list[dict[str, Any]], int]:
    """Return everything behind a cursor."""
    found: list[dict[str, Any]] = []
    while True:
        page = bridge.call("events_poll", after_cursor=cursor, limit=3)
        assert "gap" not in page
        found, cursor = found + page["events"], page["next_cursor"]
        if not page["events"]:
            return found, cursor


@requirement("case.sv1", "fault.f45")
def test_an_approval_shows_in_the_bridge_and_its_answer_runs_the_call(
    telegram: House, service: TelegramProcess
) -> None:
    with Gateway(telegram.path):
        card = asked(service, "milk")
        # It began before this bridge did.
        with BridgeProcess(telegram.path) as bridge:
            (waiting,) = bridge.call("permissions_list_open")["approvals"]
            unknown = bridge.call("permissions_respond", id="zzzz", decision="allow-once")
            resolved = bridge.begin("events_wait", timeout_ms=60_000)
            decided = bridge.call(
                "permissions_respond", id=waiting["id"], decision="allow-once", reason="fine"
            )
            event = bridge.answer(resolved)["structuredContent"]["event"]
            again = bridge.call("permissions_respond", id=waiting["id"], decision="deny")
            service.do("wait", chat=ANNA, contains="Got: 1", after=card)
            open_now = bridge.call("permissions_list_open")

    assert (waiting["server"], waiting["tool"]) == ("box", "write")
    assert waiting["arguments"] == {"text": "milk"}
    assert (waiting["requested_by"], waiting["session_key"]) == (f"telegram:{ANNA}", KEY)
    assert decided == {
        "resolved": True,
        "approval_id": waiting["id"],
        "decision": "allow-once",
    }
    assert telegram.runs == ["milk"]
    assert (event["type"], event["approval_id"]) == ("approval_resolved", waiting["id"])
    assert (event["decision"], event["decided_via"]) == ("allow-once", "bridge")
    closed = shown(service, card)
    assert "Allowed once by" in closed["text"]
    assert "via bridge" in closed["text"]
    assert not closed.get("buttons")
    assert unknown["code"] == "not_found"
    assert (again["code"], again["decision"]) == ("already_resolved", "allow-once")
    assert open_now == {"count": 0, "approvals": []}


@requirement("bridge.messages_send", "bridge.channels_list", "case.sv14")
def test_a_send_succeeds_with_the_platforms_id_alone(
    telegram: House, service: TelegramProcess
) -> None:
    with Gateway(telegram.path), BridgeProcess(telegram.path) as bridge:
        said(service, "hello")
        (channel,) = bridge.call("channels_list", search="anna")["channels"]
        once = {"target": channel["target"], "message": "one **bold** word", "idempotency_key": "k"}
        first = bridge.call("messages_send", **once)
        second = bridge.call("messages_send", **once)
        service.do(
            "fail", trouble="refuse", method="sendMessage", status=400, description="no such luck"
        )
        refused = bridge.call("messages_send", target="telegram", message="lost")
        nowhere = bridge.call("messages_send", target="telegram:#nobody", message="lost")
        read = bridge.call("messages_read", session_key=KEY)

    (message,) = sent(service, "one bold word")
    assert first["success"] is True
    assert first["message_id"] == second["message_id"] == str(message["id"])
    assert first["chat_id"] == str(ANNA)
    assert "success" not in refused
    assert refused["code"] == "rejected"
    assert "no such luck" in refused["error"]
    assert nowhere["code"] == "unresolved_target"
    assert sent(service, "lost") == []
    assert read["messages"][-2]["content"] == "one **bold** word"


@requirement("fault.f43")
def test_a_gateway_that_dies_and_comes_back_costs_the_bridge_no_event(
    telegram: House, service: TelegramProcess
) -> None:
    home = telegram.path
    with BridgeProcess(home) as bridge, BridgeProcess(home) as other:
        cursor = bridge.call("events_poll")["next_cursor"]
        nobody = bridge.call("messages_send", target="telegram", message="x")
        whole: list[dict[str, Any]] = []
        for text in ("one", "two", "three"):
            waiting = bridge.begin("events_wait", after_cursor=cursor, timeout_ms=60_000)
            with Gateway(home) as gateway:
                said(service, text)
                woken = bridge.answer(waiting)["structuredContent"]["event"]
                assert woken["content"] == text
                reached = bridge.call("messages_send", target="telegram", message=f"after {text}")
                assert reached["success"] is True
                gateway.kill()
            # Reading goes on, sending says at once why it does not.
            found, cursor = events(bridge, cursor)
            whole += found
            down = bridge.call("messages_send", target="telegram", message="never")
            assert down["code"] == nobody["code"] == "gateway_not_running"
            assert bridge.call("conversations_list")["count"] == 1
            # A bridge that is killed takes nothing with it either.
            other.process.kill()

        with BridgeProcess(home) as late:
            replayed, last = [], 0
            while True:
                page = late.call("events_poll", after_cursor=last, replay=True, limit=2)
                replayed, last = replayed + page["events"], page["next_cursor"]
                if not page["events"]:
                    break
    assert [event["content"] for event in whole if event["author"] is not None] == [
        text for word in ("one", "two", "three") for text in (word, f"after {word}")
    ]
    assert replayed == whole
    assert len({event["cursor"] for event in whole}) == len(whole)
    assert sent(service, "never") == []


@requirement("threat.s27")
def test_a_bridge_that_the_gateway_started_answers_no_approval_of_its_agent(
    telegram: House, service: TelegramProcess
) -> None:
    # The agent's own tools reach the bridge: the gateway starts it as one of its servers.
    telegram.servers["own"] = {
        "command": sys.executable,
        "args": ["-m", "gateway.cli.main", "mcp", "serve"],
        "env": {"HERMES_HOME": str(telegram.path), "PYTHONPATH": "${PYTHONPATH}"},
        "trust": "full",
    }
    configure(telegram, service)
    with Gateway(telegram.path), BridgeProcess(telegram.path) as outside:
        card = asked(service, "milk")
        (waiting,) = outside.call("permissions_list_open")["approvals"]
        arguments = json.dumps({"id": waiting["id"], "decision": "allow-once"})
        call = f"/call mcp__own__permissions_respond {arguments}"
        answer = hermes(telegram.path, "chat", "-q", call)
        still = outside.call("permissions_list_open")["approvals"]

    assert "may not decide" in answer.stdout
    assert [item["id"] for item in still] == [waiting["id"]]
    assert telegram.runs == []
    assert not shown(service, card)["text"].count("Allowed")


@requirement("bridge.channel_mode")
@pytest.mark.parametrize(
    ("label", "behavior"), [("Allow once", "allow"), ("Deny", "deny")], ids=["allow", "deny"]
)
def test_a_permission_claude_code_asks_for_is_a_card_whose_press_goes_back(
    telegram: House, service: TelegramProcess, label: str, behavior: str
) -> None:
    with (
        Gateway(telegram.path),
        BridgeProcess(telegram.path, "--claude-channel-mode", "auto", client=CLAUDE) as bridge,
    ):
        wish = said(service, "run the tests")
        pushed = bridge.notification("notifications/claude/channel")
        asked_for = {
            "request_id": "abcde",
            "tool_name": "Bash",
            "description": "Runs the tests",
            "input_preview": '{"command": "make test"}',
        }
        bridge.notify("notifications/claude/channel/permission_request", asked_for)
        card = service.do("wait", chat=ANNA, label="Allow once", after=wish)
        (waiting,) = bridge.call("permissions_list_open")["approvals"]
        service.do("press", chat=ANNA, label=label, message=card["id"])
        verdict = bridge.notification("notifications/claude/channel/permission")
        answered = bridge.call("messages_send", target=pushed["meta"]["target"], message="done")

    assert pushed["content"] == "run the tests"
    assert pushed["meta"]["user"] == f"telegram:{ANNA}"
    assert pushed["meta"]["target"] == f"telegram:{ANNA}"
    assert "make test" in card["text"]
    assert "Bash" in card["text"]
    assert waiting["actions"] == ["allow-once", "deny"]
    assert verdict == {"request_id": "abcde", "behavior": behavior}
    assert answered["success"] is True
    assert telegram.runs == []
