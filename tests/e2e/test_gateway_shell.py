"""`hermes send` and `hermes approvals` beside a running gateway that is on Telegram, and without one."""

import json
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.house import House
from tests.fakes.telegram.process import TelegramProcess, telegram_process
from tests.support.chat import Chat, hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

ANNA = 111


@pytest.fixture(scope="module")
def service() -> Generator[TelegramProcess]:
    with telegram_process(unlimited=True) as running:
        running.do("bot")
        running.do("user", id=ANNA, name="Anna")
        running.do("private", user=ANNA)
        yield running


@pytest.fixture
def telegram(house: House, service: TelegramProcess) -> House:
    """A home on Telegram that knows Anna, with one gated tool."""
    house.serve()
    _configure(house, service)
    return house


def _configure(house: House, service: TelegramProcess, **more: object) -> None:
    token = service.do("bot")["token"]
    account = {
        "token": token,
        "base_url": service.base_url,
        "allow_from": [str(ANNA)],
        "home_channel": str(ANNA),
        **more,
    }
    house.configure(platforms={"telegram": account})


def sent(service: TelegramProcess, text: str) -> list[dict[str, Any]]:
    return [item for item in service.do("messages", chat=ANNA) if item["text"] == text]


@requirement("cli.send.waits_for_id", "case.t27", "target.forms")
def test_a_message_is_sent_and_its_id_is_printed(telegram: House, service: TelegramProcess) -> None:
    home = telegram.path
    (home / "text.md").write_text("from a file\n")

    with Gateway(home):
        by_home = hermes(home, "send", "--to", "telegram", "to the home channel")
        by_id = hermes(home, "send", "--to", f"telegram:{ANNA}", "--json", "by id")
        by_file = hermes(home, "send", "--to", "telegram", "-f", str(home / "text.md"))
        by_pipe = hermes(home, "send", "--to", "telegram", "-", stdin="from a pipe\n")

    for done, text in (
        (by_home, "to the home channel"),
        (by_file, "from a file"),
        (by_pipe, "from a pipe"),
    ):
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{sent(service, text)[0]['id']}\n"
    found = json.loads(by_id.stdout)
    assert found["message_id"] == str(sent(service, "by id")[0]["id"])
    assert (found["platform"], found["chat_id"]) == ("telegram", str(ANNA))


@requirement("target.never_home_fallback", "cli.send.nothing_queued")
def test_a_target_that_is_none_sends_nothing_anywhere(
    telegram: House, service: TelegramProcess
) -> None:
    home = telegram.path
    with Gateway(home):
        unknown = hermes(home, "send", "--to", "telegram:999", "lost")
        nowhere = hermes(home, "send", "--to", "slack:C1", "lost")
        empty = hermes(home, "send", "--to", "telegram", "-", stdin="\n")

    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "no channel is known as telegram:999" in unknown.stderr
    assert "no platform slack" in nowhere.stderr
    assert "empty" in empty.stderr
    assert _outbox(home) == 0
    assert sent(service, "lost") == []


@requirement("case.t27")
def test_a_home_channel_by_name_is_reached_or_the_reason_is_told(
    telegram: House, service: TelegramProcess
) -> None:
    home = telegram.path
    service.do("supergroup", title="News", username="hermes_news", people=[ANNA])

    _configure(telegram, service, home_channel="@hermes_news")
    with Gateway(home):
        reached = hermes(home, "send", "--to", "telegram", "to all")
    _configure(telegram, service, home_channel="@nobody_has_this")
    with Gateway(home):
        missing = hermes(home, "send", "--to", "telegram", "to none")

    assert (reached.returncode, reached.stderr) == (0, "")
    assert reached.stdout.strip().isdecimal()
    assert missing.returncode == 1
    assert "chat not found" in missing.stderr.lower()


@requirement("cli.send.no_gateway", "cli.send.nothing_queued")
def test_without_a_gateway_a_send_fails_at_once_and_is_never_made_up_for(
    telegram: House, service: TelegramProcess
) -> None:
    home = telegram.path
    with Gateway(home):
        hermes(home, "send", "--to", "telegram", "before")
    started = time.monotonic()
    refused = hermes(home, "send", "--to", "telegram", "while it was down")
    took = time.monotonic() - started
    with Gateway(home):
        hermes(home, "send", "--to", "telegram", "after")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "hermes: The gateway is not running.\n"
    assert took < 5
    assert sent(service, "while it was down") == []
    assert len(sent(service, "after")) == 1


@requirement("cli.gateway.status_exit", "platform.failure.never_stops_others")
def test_a_platform_that_refuses_degrades_the_status_and_stops_nothing(
    telegram: House, service: TelegramProcess
) -> None:
    home = telegram.path
    _configure(telegram, service, token="1:wrong")

    with Gateway(home):
        eventually(lambda: _platform(home)["state"] == "unauthorized", what="the token is refused")
        done = hermes(home, "gateway", "status")
        sending = hermes(home, "send", "--to", "telegram", "x")
        with Chat(home, args=("chat", "-q", "hello")) as chat:
            chat.expect("You said: hello")

    assert done.returncode == 1
    assert "running, degraded" in done.stdout
    assert "platform telegram unauthorized" in done.stdout
    assert sending.returncode == 1
    assert "unauthorized" in sending.stderr


@requirement("fault.f18")
def test_one_bot_is_run_by_one_process_of_a_machine(
    telegram: House, service: TelegramProcess, tmp_path: Path
) -> None:
    other = House(path=tmp_path / "other", model=telegram.model)
    other.path.mkdir(mode=0o700)
    _configure(other, service)

    with Gateway(telegram.path) as first, Gateway(other.path):
        second = hermes(other.path, "gateway", "status", "--json")
        refused = hermes(other.path, "send", "--to", "telegram", "x")
        eventually(lambda: _platform(telegram.path)["state"] == "connected", what="the first")
    with Gateway(other.path):
        eventually(lambda: _platform(other.path)["state"] == "connected", what="it may run now")

    (found,) = json.loads(second.stdout)["platforms"]
    assert second.returncode == 1
    assert found["state"] == "off"
    assert f"process {first.pid} on this machine already runs this bot" in found["reason"]
    assert refused.returncode == 1
    assert service.do("bot")["token"] not in second.stdout + refused.stderr


@requirement("approval.decide.surfaces")
def test_the_shell_decides_what_waits_in_a_chat(telegram: House, service: TelegramProcess) -> None:
    home = telegram.path
    with Gateway(home):
        first = _asked(service, "milk")
        listed = json.loads(hermes(home, "approvals", "list", "--json").stdout)["approvals"]
        (waiting,) = listed
        shown = hermes(home, "approvals", "show", waiting["short"])
        denied = hermes(home, "approvals", "deny", waiting["short"], "--reason", "not today")
        late = hermes(home, "approvals", "allow", waiting["short"])
        unknown = hermes(home, "approvals", "allow", "zzzz")
        service.do("wait", chat=ANNA, contains="Denied by", after=first - 1)

        _asked(service, "bread")
        (waiting,) = json.loads(hermes(home, "approvals", "list", "--json").stdout)["approvals"]
        allowed = hermes(home, "approvals", "allow", waiting["id"], "--session")
        service.do("wait", chat=ANNA, contains="Got: 1")
        rules = json.loads(hermes(home, "approvals", "rules", "--json").stdout)["rules"]

    assert (waiting["kind"], waiting["server"], waiting["tool"]) == ("tool_call", "box", "write")
    assert waiting["arguments"] == {"text": "bread"}
    assert waiting["requested_by"] == f"telegram:{ANNA}"
    assert waiting["session_key"] == f"agent:main:telegram:dm:{ANNA}"
    assert '"text": "milk"' in shown.stdout
    assert (denied.returncode, denied.stdout) == (0, "")
    assert late.returncode == 1
    assert "Already settled: Denied by" in late.stderr
    assert unknown.returncode == 3
    assert allowed.returncode == 0
    assert [(rule["server"], rule["tool"], rule["scope"]) for rule in rules] == [
        ("box", "write", "session")
    ]
    assert telegram.runs == ["bread"]

    everything = json.loads(hermes(home, "approvals", "list", "--all", "--json").stdout)
    states = [(item["state"], item["decided_via"]) for item in everything["approvals"]]
    assert states == [("allowed", "cli"), ("denied", "cli")]
    revoked = hermes(home, "approvals", "revoke", rules[0]["id"])
    again = hermes(home, "approvals", "revoke", rules[0]["id"])
    assert (revoked.returncode, again.returncode) == (0, 3)
    assert hermes(home, "approvals", "rules").stderr == "there is no standing rule\n"


@requirement("approval.decide.surfaces")
def test_without_a_gateway_the_shell_decides_for_the_next_one(
    telegram: House, service: TelegramProcess
) -> None:
    home = telegram.path
    with Gateway(home) as gateway:
        card = _asked(service, "late")
        gateway.end()
    (waiting,) = json.loads(hermes(home, "approvals", "list", "--json").stdout)["approvals"]

    allowed = hermes(home, "approvals", "allow", waiting["short"])
    late = hermes(home, "approvals", "deny", waiting["short"])

    assert (allowed.returncode, allowed.stdout) == (0, "")
    assert (late.returncode, late.stderr.startswith("hermes: Already settled: Allowed once")) == (
        1,
        True,
    )
    assert telegram.runs == []
    with Gateway(home):
        service.do("wait", chat=ANNA, contains="Got: 1", after=card)
        closed = service.do("wait", chat=ANNA, contains="Allowed once by", after=card - 1)
    assert closed["id"] == card
    assert telegram.runs == ["late"]


def test_a_fresh_home_has_nothing_to_list(house: House) -> None:
    for command, key in (("list", "approvals"), ("rules", "rules")):
        done = hermes(house.path, "approvals", command, "--json")
        assert (done.returncode, json.loads(done.stdout)) == (0, {key: []})
    assert hermes(house.path, "approvals", "show", "abcd").returncode == 3
    assert not (house.path / "state.db").exists()


@pytest.mark.parametrize(
    "args",
    [
        ("send", "hello"),
        ("send", "--to", "telegram"),
        ("send", "--to", "telegram", "text", "-f", "file"),
        ("approvals", "allow"),
        ("approvals", "allow", "abcd", "--session", "--always"),
    ],
)
def test_a_call_that_is_none_is_a_usage_error(house: House, args: tuple[str, ...]) -> None:
    done = hermes(house.path, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def _asked(service: TelegramProcess, text: str) -> int:
    """Let Anna ask for a run of the gated tool; return the id of its card."""
    said = service.do("say", chat=ANNA, text=f"call write {json.dumps({'text': text})}")
    card = service.do("wait", chat=ANNA, label="Allow once", after=said["id"])
    found: int = card["id"]
    return found


def _platform(home: Path) -> dict[str, Any]:
    done = hermes(home, "gateway", "status", "--json")
    (found,) = json.loads(done.stdout)["platforms"]
    return found


def _outbox(home: Path) -> int:
    with closing(sqlite3.connect(f"file:{home}/state.db?mode=ro", uri=True)) as connection:
        found: int = connection.execute("SELECT count(*) FROM delivery").fetchone()[0]
    return found
