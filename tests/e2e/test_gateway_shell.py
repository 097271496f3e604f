"""The shell where no gateway runs, or one whose platform is not what it should be."""

import json
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.e2e.house import House
from tests.e2e.on_telegram import (
    ANNA,
    UNHURRIED,
    asked,
    configure,
    platform_status,
    sent,
    telegram_with_anna,
)
from tests.fakes.telegram.process import TelegramProcess
from tests.support.chat import Chat, hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement


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


@requirement("case.t27")
def test_a_home_channel_by_name_is_reached_or_the_reason_is_told(
    telegram: House, service: TelegramProcess
) -> None:
    home = telegram.path
    service.do("supergroup", title="News", username="hermes_news", people=[ANNA])

    configure(telegram, service, home_channel="@hermes_news")
    with Gateway(home):
        reached = hermes(home, "send", "--to", "telegram", "to all")
    configure(telegram, service, home_channel="@nobody_has_this")
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
    configure(telegram, service, token="1:wrong")

    with Gateway(home):
        eventually(
            lambda: platform_status(home)["state"] == "unauthorized", what="the token is refused"
        )
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
    configure(other, service)

    with Gateway(telegram.path) as first, Gateway(other.path):
        second = hermes(other.path, "gateway", "status", "--json")
        refused = hermes(other.path, "send", "--to", "telegram", "x")
        eventually(lambda: platform_status(telegram.path)["state"] == "connected", what="the first")
    with Gateway(other.path):
        eventually(
            lambda: platform_status(other.path)["state"] == "connected", what="it may run now"
        )

    (found,) = json.loads(second.stdout)["platforms"]
    assert second.returncode == 1
    assert found["state"] == "off"
    assert f"process {first.pid} on this machine already runs this bot" in found["reason"]
    assert refused.returncode == 1
    assert service.do("bot")["token"] not in second.stdout + refused.stderr


@requirement("approval.decide.surfaces")
def test_without_a_gateway_the_shell_decides_for_the_next_one(
    telegram: House, service: TelegramProcess
) -> None:
    home = telegram.path
    with Gateway(home) as gateway:
        card = asked(service, "late")
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


@requirement("case.ap5")
def test_one_question_of_the_shell_is_decided_in_the_home_channel(
    telegram: House, service: TelegramProcess
) -> None:
    platforms = json.loads((telegram.path / "config.yaml").read_text())["platforms"]
    admins = {**UNHURRIED, "admins": [f"telegram:{ANNA}"]}
    telegram.configure(platforms=platforms, access=admins)
    said = service.do("say", chat=ANNA, text="before")
    with Gateway(telegram.path):
        service.do("wait", chat=ANNA, contains="You said: before", after=said["id"])
        asking = ("chat", "-q", f"call write {json.dumps({'text': 'from the shell'})}")
        with Chat(telegram.path, args=asking) as chat:
            card = service.do("wait", chat=ANNA, label="Always allow", after=said["id"])
            assert telegram.runs == []
            service.do("press", chat=ANNA, label="Allow once", message=card["id"])
            chat.expect("Got: 1")
            assert chat.end() == 0
        service.do("wait", chat=ANNA, contains="Allowed once by", after=card["id"] - 1)
    assert telegram.runs == ["from the shell"]


@requirement("design.approvals.json")
def test_a_fresh_home_has_nothing_to_list(house: House) -> None:
    for command, key in (("list", "approvals"), ("rules", "rules")):
        done = hermes(house.path, "approvals", command, "--json")
        assert (done.returncode, json.loads(done.stdout)) == (0, {key: []})
    for command in ("show", "allow", "deny"):
        assert hermes(house.path, "approvals", command, "abcd").returncode == 3
    assert hermes(house.path, "approvals", "revoke", "1").returncode == 3
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
