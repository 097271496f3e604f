"""The service as a process: it gets ready, is asked, is stopped, and refuses what it cannot be."""

import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from gateway.domain.errors import HomeLocked
from store.lock import hold_home
from tests.e2e.house import CARD, House
from tests.support.chat import HERMES, Chat, environment, hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement


@pytest.fixture
def gateway_home(house: House) -> House:
    """A home with a model and one server with a gated tool."""
    house.serve()
    house.configure()
    return house


def status(home: Path) -> "tuple[int, dict[str, object]]":
    done = hermes(home, "gateway", "status", "--json")
    return done.returncode, json.loads(done.stdout)


@requirement("design.gateway.ready_line", "cli.gateway.status_exit", "cli.gateway.stop")
def test_it_says_once_that_it_is_ready_is_asked_and_stopped(gateway_home: House) -> None:
    home = gateway_home.path
    assert status(home)[0] == 3

    with Gateway(home) as gateway:
        code, found = status(home)
        assert (code, found["running"], found["pid"]) == (0, True, gateway.pid)
        people = hermes(home, "gateway", "status")
        assert people.stdout.startswith(f"running, healthy (pid {gateway.pid})")
        assert stat.S_IMODE(gateway.socket.stat().st_mode) == 0o600

        stopped = hermes(home, "gateway", "stop")
        assert stopped.returncode == 0
        assert not _holds_lock(home)
        assert gateway.wait(seconds=1) == 0
        assert gateway.stdout == f"hermes gateway ready (pid {gateway.pid})\n"
        assert "Traceback" not in gateway.stderr

    assert not gateway.socket.exists()
    code, found = status(home)
    assert (code, found["running"], found["healthy"], found["pid"]) == (3, False, False, None)
    again = hermes(home, "gateway", "stop")
    assert (again.returncode, again.stderr) == (1, "hermes: The gateway is not running.\n")


@requirement("fault.f17")
def test_a_second_one_is_refused_at_once_and_the_first_is_undisturbed(
    gateway_home: House,
) -> None:
    home = gateway_home.path
    with Gateway(home) as gateway:
        floor = min(_seconds(sys.executable, "-c", "pass") for _ in range(3))
        for command in (["gateway"], ["gateway", "run"]):
            second = hermes(home, *command)
            assert second.returncode == 1
            assert second.stdout == ""
            assert second.stderr == (
                f"hermes: home {home}: already in use by process {gateway.pid}\n"
            )
        # Measured against the interpreter itself; other work on the machine must not fail this.
        took = min(_seconds(*HERMES, "gateway", "run", home=home) for _ in range(3))
        assert took <= max(0.1, 5 * floor)
        with Chat(home, args=("chat", "-q", "still there?")) as chat:
            chat.expect("You said: still there")
        assert status(home)[0] == 0


@requirement("cli.chat.attaches")
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_a_chat_attaches_to_it_with_cards_and_replies(
    gateway_home: House, *, terminal: bool
) -> None:
    with Gateway(gateway_home.path) as gateway:
        with gateway_home.chat(terminal=terminal) as chat:
            chat.say('call write {"text": "milk"}')
            chat.expect(f"box · write\n.*?{CARD}")
            chat.say("1")
            chat.expect(r"write: Allowed once by \S+ · \d\d:\d\d")
            chat.expect("Got: 1")
            assert chat.end() == 0
        with gateway_home.chat(terminal=terminal) as chat:
            chat.say("hello again")
            chat.expect("You said: hello again")
            assert chat.end() == 0
        assert gateway.running
        assert gateway_home.runs == ["milk"]


@requirement("design.chat.one_shot")
def test_one_question_prints_the_reply_alone_and_its_exit_code_tells(gateway_home: House) -> None:
    home = gateway_home.path
    with Gateway(home):
        fine = hermes(home, "chat", "-q", "hello")
        gated = hermes(home, "chat", "-q", 'call write {"text": "milk"}')
        failed = hermes(home, "chat", "-q", "fail unauthorized")

    assert (fine.returncode, fine.stdout, fine.stderr) == (0, "You said: hello\n", "")
    assert gated.returncode == 0
    assert "nobody can be asked here" in gated.stdout
    assert gateway_home.runs == []
    assert (failed.returncode, failed.stdout.count("\n")) == (1, 1)


@requirement("fault.f46")
def test_sigterm_lets_a_turn_end_and_a_second_one_does_not(gateway_home: House) -> None:
    free = gateway_home.file("free")
    hold = json.dumps({"text": str(free)})
    gateway_home.serve(tools={"policy": {"*": "allow"}})
    gateway_home.configure()
    home = gateway_home.path

    with (
        Gateway(home) as gateway,
        Chat(home, args=("chat", "-q", f"call hold_write {hold}")) as chat,
    ):
        eventually(lambda: bool(gateway_home.runs), what="the tool runs")
        started = time.monotonic()
        gateway.signal(signal.SIGTERM)
        refused = hermes(home, "chat", "-q", "more")
        assert refused.returncode == 1
        assert "stopping" in refused.stderr
        free.touch()
        chat.expect("Got: ")
        assert gateway.wait(seconds=10) == 0
        assert time.monotonic() - started < 10
        assert chat.wait(seconds=10) in {0, 1}

    free.unlink()
    with Gateway(home) as gateway, Chat(home, args=("chat", "-q", f"call hold_write {hold}")):
        eventually(lambda: len(gateway_home.runs) == 2, what="the tool runs again")
        gateway.signal(signal.SIGTERM)
        eventually(lambda: "draining" in gateway.stderr, what="it drains")
        started = time.monotonic()
        gateway.signal(signal.SIGTERM)
        assert gateway.wait(seconds=5) == -signal.SIGTERM
        assert time.monotonic() - started < 1
        assert not _holds_lock(home)


@requirement("fault.f46")
def test_a_turn_that_does_not_end_is_parked_within_ten_seconds(gateway_home: House) -> None:
    gateway_home.serve(tools={"policy": {"*": "allow"}})
    gateway_home.configure()
    home = gateway_home.path
    hold = json.dumps({"text": str(gateway_home.file("never"))})

    with (
        Gateway(home) as gateway,
        Chat(home, args=("chat", "-q", f"call hold_write {hold}")) as chat,
    ):
        eventually(lambda: bool(gateway_home.runs), what="the tool runs")
        started = time.monotonic()
        gateway.signal(signal.SIGINT)
        assert gateway.wait(seconds=15) == 0
        assert time.monotonic() - started < 11.5
        assert chat.wait(seconds=5) == 1
        assert "Traceback" not in gateway.stderr


@requirement("threat.s17")
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells it there")
def test_no_port_is_open(gateway_home: House) -> None:
    with Gateway(gateway_home.path) as gateway:
        held = {os.readlink(entry) for entry in Path(f"/proc/{gateway.pid}/fd").iterdir()}
        listening = [
            line.split()[9]
            for table in ("tcp", "tcp6", "udp", "udp6")
            if Path(f"/proc/net/{table}").exists()
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
            if table.startswith("udp") or line.split()[3] == "0A"
        ]

    assert not held & {f"socket:[{inode}]" for inode in listening}


@pytest.mark.parametrize("damage", ["foreign", "newer", "text"])
def test_a_database_that_is_not_ours_is_one_sentence(gateway_home: House, damage: str) -> None:
    path = gateway_home.path / "state.db"
    if damage == "text":
        path.write_text("no database at all, but long enough to look like a file " * 20)
    else:
        with closing(sqlite3.connect(path)) as connection:
            identifier = 1213353287 if damage == "newer" else 7
            connection.execute("CREATE TABLE other (x)")
            connection.execute(f"PRAGMA application_id = {identifier}")
            connection.execute("PRAGMA user_version = 999")
            connection.commit()
    before = path.read_bytes()

    _refused(gateway_home.path, str(path))

    assert path.read_bytes() == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a directory somebody else's")
def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [*HERMES, "gateway", "run"],
        env=environment(tmp_path, {"HERMES_HOME": str(tmp_path / "file" / "home")}),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert done.returncode == 1
    assert re.fullmatch(r"hermes: home .*; set HERMES_HOME to a directory .*\n", done.stderr)


def test_a_broken_configuration_is_one_sentence(gateway_home: House) -> None:
    (gateway_home.path / "config.yaml").write_text("gateway:\n\tmax_rounds: 1\n")

    _refused(gateway_home.path, "config.yaml:2:1: YAML syntax error")


@requirement("cli.gateway.status_exit")
def test_one_that_does_not_answer_is_running_and_degraded(gateway_home: House) -> None:
    home = gateway_home.path
    with Gateway(home) as gateway:
        gateway.signal(signal.SIGSTOP)
        try:
            code, found = status(home)
        finally:
            gateway.signal(signal.SIGCONT)
        assert (code, found["running"], found["healthy"]) == (1, True, False)
        assert found["pid"] == gateway.pid
        assert "no answer" in str(found["reason"])
        assert status(home)[0] == 0


@requirement("cli.gateway.stop")
def test_it_stops_at_once_when_it_is_told_to(gateway_home: House) -> None:
    gateway_home.serve(tools={"policy": {"*": "allow"}})
    gateway_home.configure()
    home = gateway_home.path
    hold = json.dumps({"text": str(gateway_home.file("never"))})

    with Gateway(home) as gateway, Chat(home, args=("chat", "-q", f"call hold_write {hold}")):
        eventually(lambda: bool(gateway_home.runs), what="the tool runs")
        done = hermes(home, "gateway", "stop", "--now")
        assert done.returncode == 0
        assert gateway.wait(seconds=1) == -signal.SIGTERM
        assert not _holds_lock(home)


def _refused(home: Path, says: str) -> None:
    done = hermes(home, "gateway", "run")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("hermes: ")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def _seconds(*command: str, home: Path | None = None) -> float:
    started = time.perf_counter()
    env = None if home is None else environment(home)
    subprocess.run(command, env=env, capture_output=True, check=False, timeout=60)
    return time.perf_counter() - started


def _holds_lock(home: Path) -> bool:
    try:
        with hold_home(home):
            return False
    except HomeLocked:
        return True
