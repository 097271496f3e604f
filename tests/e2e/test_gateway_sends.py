"""`hermes send` and `hermes approvals` beside one gateway that is on Telegram."""

import json
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.house import House, Model
from tests.e2e.on_telegram import ANNA, asked, configure, sent, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement


@pytest.fixture(scope="module")
def service() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        yield running


@pytest.fixture(scope="module")
def running(
    service: TelegramProcess, model: Model, tmp_path_factory: pytest.TempPathFactory
) -> Generator[House]:
    """A home whose gateway runs for several tests."""
    house = House(path=tmp_path_factory.mktemp("running") / "home", model=model)
    house.path.mkdir(mode=0o700)
    house.serve()
    configure(house, service)
    with Gateway(house.path):
        yield house


@requirement("cli.send.waits_for_id", "case.t27", "target.forms")
def test_a_message_is_sent_and_its_id_is_printed(running: House, service: TelegramProcess) -> None:
    home = running.path
    (home / "text.md").write_text("from a file\n")

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


@requirement("cli.send.attach_list")
def test_files_go_with_a_message_and_what_cannot_be_sent_is_explained(
    running: House, service: TelegramProcess, tmp_path: Path
) -> None:
    home = running.path
    (tmp_path / "notes.txt").write_text("milk")
    (tmp_path / "link.txt").symlink_to(tmp_path / "notes.txt")
    (tmp_path / "big.bin").touch()
    os.truncate(tmp_path / "big.bin", 51_000_000)

    both = hermes(
        home,
        *("send", "--to", "telegram", "two files", "--json"),
        *("--attach", str(tmp_path / "notes.txt"), "--attach", str(tmp_path / "link.txt")),
    )
    alone = hermes(home, "send", "--to", "telegram", "--attach", str(tmp_path / "notes.txt"))
    before = _outbox(home)
    big = hermes(home, "send", "--to", "telegram", "x", "--attach", str(tmp_path / "big.bin"))
    none = hermes(home, "send", "--to", "telegram", "x", "--attach", str(tmp_path / "none"))
    own = hermes(home, "send", "--to", "telegram", "x", "--attach", str(home / "config.yaml"))

    ids = json.loads(both.stdout)["message_ids"]
    shown = {str(item["id"]): item for item in service.do("messages", chat=ANNA)}
    assert [shown[each]["text"] for each in ids] == ["two files", ""]
    names = [shown[each]["media"]["document"]["file_name"] for each in ids]
    # A link that the caller names is followed by the caller.
    assert names == ["notes.txt", "notes.txt"]
    assert shown[alone.stdout.strip()]["media"]["document"]["file_size"] == 4
    said = "big.bin cannot be sent to telegram: it has 51 MB, and 50 MB is the limit"
    assert said in big.stderr
    assert "none is not there" in none.stderr
    assert "config.yaml belongs to the gateway itself and is not sent" in own.stderr
    assert [done.returncode for done in (both, alone, big, none, own)] == [0, 0, 1, 1, 1]
    assert _outbox(home) == before


@requirement("cli.send.attach_list")
def test_the_known_targets_are_listed_with_and_without_a_gateway(
    running: House, service: TelegramProcess, tmp_path: Path
) -> None:
    service.do("say", chat=ANNA, text="/status")
    eventually(lambda: "telegram:111" in hermes(running.path, "send", "--list").stdout)

    plain = hermes(running.path, "send", "--list", "--to", "telegram")
    listed = json.loads(hermes(running.path, "send", "--list", "--json").stdout)["channels"]
    other = hermes(running.path, "send", "--list", "--to", "slack")
    fresh = hermes(tmp_path, "send", "--list")
    wrong = hermes(running.path, "send", "--list", "text")

    assert plain.stdout == f"telegram:{ANNA}\tAnna (dm, home)\n"
    assert {
        "target": f"telegram:{ANNA}",
        "platform": "telegram",
        "name": "Anna",
        "chat_type": "dm",
        "home": True,
    } in listed
    assert (other.stdout, other.returncode) == ("", 0)
    assert (fresh.stdout, fresh.returncode) == ("", 0)
    assert "no target is known yet" in fresh.stderr
    assert wrong.returncode == 2


@requirement("target.never_home_fallback", "cli.send.nothing_queued")
def test_a_target_that_is_none_sends_nothing_anywhere(
    running: House, service: TelegramProcess
) -> None:
    home = running.path
    before = _outbox(home)

    unknown = hermes(home, "send", "--to", "telegram:999", "lost")
    nowhere = hermes(home, "send", "--to", "slack:C1", "lost")
    empty = hermes(home, "send", "--to", "telegram", "-", stdin="\n")

    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "no channel is known as telegram:999" in unknown.stderr
    assert "no platform slack" in nowhere.stderr
    assert "empty" in empty.stderr
    assert _outbox(home) == before
    assert sent(service, "lost") == []


@requirement("approval.decide.surfaces", "approval.decide.audit", "design.approvals.json")
def test_the_shell_decides_what_waits_in_a_chat(running: House, service: TelegramProcess) -> None:
    home = running.path
    first = asked(service, "milk")
    listed = json.loads(hermes(home, "approvals", "list", "--json").stdout)["approvals"]
    (waiting,) = listed
    shown = hermes(home, "approvals", "show", waiting["short"])
    denied = hermes(home, "approvals", "deny", waiting["short"], "--reason", "not today")
    late = hermes(home, "approvals", "allow", waiting["short"])
    unknown = hermes(home, "approvals", "allow", "zzzz")
    service.do("wait", chat=ANNA, contains="Denied by", after=first - 1)

    asked(service, "bread")
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
    assert running.runs == ["bread"]

    everything = json.loads(hermes(home, "approvals", "list", "--all", "--json").stdout)
    states = [(item["state"], item["decided_via"]) for item in everything["approvals"]]
    assert states == [("allowed", "cli"), ("denied", "cli")]
    books = [(item["arguments"]["text"], item["result"]) for item in everything["approvals"]]
    assert books == [("bread", "ok"), ("milk", "")]
    tried = [
        (attempt["action"], attempt["outcome"], attempt["via"], attempt["reason"])
        for attempt in everything["approvals"][1]["attempts"]
    ]
    assert tried == [("deny", "counted", "cli", "not today"), ("allow-once", "late", "cli", "")]
    books_of_one = hermes(home, "approvals", "show", everything["approvals"][1]["id"]).stdout
    assert "via cli: deny, counted: not today\n" in books_of_one
    assert "via cli: allow-once, late\n" in books_of_one
    revoked = hermes(home, "approvals", "revoke", rules[0]["id"])
    again = hermes(home, "approvals", "revoke", rules[0]["id"])
    assert (revoked.returncode, again.returncode) == (0, 3)
    assert hermes(home, "approvals", "rules").stderr == "there is no standing rule\n"


def _outbox(home: Path) -> int:
    with closing(sqlite3.connect(f"file:{home}/state.db?mode=ro", uri=True)) as connection:
        found: int = connection.execute("SELECT count(*) FROM delivery").fetchone()[0]
    return found
