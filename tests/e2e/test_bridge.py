"""`hermes mcp serve` as a process of its own, with no gateway running."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.cli.endings import is_there
from tests.support.bridge import BridgeProcess, writing
from tests.support.chat import environment, hermes
from tests.support.eventually import eventually
from tests.support.requirement import requirement

HELLO: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
KEY: Final = "agent:main:telegram:dm:100000"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir(mode=0o700)
    return place


@requirement("bridge.exit")
@pytest.mark.parametrize(
    ("how", "code"), [("eof", 0), ("SIGTERM", 0), ("SIGINT", 130)], ids=["eof", "term", "int"]
)
def test_it_ends_with_its_input_or_a_signal_whatever_waits(home: Path, how: str, code: int) -> None:
    with BridgeProcess(home) as bridge:
        for _ in range(3):
            bridge.begin("events_wait", timeout_ms=300_000)
        bridge.call("events_poll")

        if how == "eof":
            bridge.close_input()
        else:
            bridge.signal(getattr(signal, how))

        assert bridge.wait(seconds=5) == code
        assert "Traceback" not in bridge.stderr


PARENT: Final = """
import subprocess, sys
bridge = subprocess.Popen(
    [sys.executable, "-m", "gateway.cli.main", "mcp", "serve"], stdin=int(sys.argv[1])
)
print(bridge.pid, flush=True)
bridge.wait()
"""


@requirement("bridge.exit")
def test_it_ends_when_its_client_is_gone_and_somebody_else_holds_its_input(home: Path) -> None:
    read, write = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(read)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(home),
        pass_fds=(read,),
        text=True,
        cwd=home,
    ) as parent:
        os.close(read)
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.write(write, json.dumps(HELLO).encode() + b"\n")
        assert "serverInfo" in parent.stdout.readline()

        parent.kill()
        parent.wait(10)

        # Its end closes the pipe we read from; our end of its input is open all the while.
        assert parent.stdout.read() == ""
    eventually(lambda: not is_there(pid))
    os.close(write)


@requirement("bridge.exit")
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_what_was_asked_before_the_end_of_the_input_is_answered(
    home: Path, tmp_path: Path, kind: str
) -> None:
    calls = [dict[str, Any](HELLO, id=n, method="tools/list", params={}) for n in range(2, 8)]
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    messages: list[dict[str, Any]] = [HELLO, initialized, *calls]
    text = "".join(json.dumps(message) + "\n" for message in messages)
    (tmp_path / "lines").write_text(text)

    with (
        (tmp_path / "lines").open() as source,
        subprocess.Popen(
            [sys.executable, "-m", "gateway.cli.main", "mcp", "serve"],
            stdin=source if kind == "file" else subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(home),
            text=True,
        ) as process,
    ):
        out, _ = process.communicate(None if kind == "file" else text, timeout=60)

    assert process.returncode == 0
    answers: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert sorted(answer["id"] for answer in answers) == list(range(1, 8))
    assert all("result" in answer for answer in answers)


@requirement("case.sv10")
def test_stdout_carries_nothing_but_messages_whatever_goes_wrong(home: Path) -> None:
    (home / "state.db").write_bytes(b"this is no database at all, whatever it looks like")
    env = {"PYTHONWARNINGS": "always", "PYTHONDEVMODE": "1"}
    with BridgeProcess(home, "--verbose", env=env) as bridge:
        assert bridge.call("conversations_list")["code"] == "store_unavailable"
        assert (
            bridge.call("messages_send", target="x", message="y")["code"] == "gateway_not_running"
        )
        for line in (
            b"",
            b"not json",
            b'{"jsonrpc":"2.0"}',
            b"\xff\xfe",
            b'{"id":"\\ud800"}',
            b"[]",
        ):
            bridge.write(line)
        bridge.ask("tools/list", {})
        bridge.notify("notifications/unheard", {"x": 1})
        assert bridge.call("events_wait", timeout_ms=1)["code"] == "store_unavailable"
        bridge.close_input()
        assert bridge.wait() == 0

    for line in bridge.lines:
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert bridge.stderr


@requirement("design.wakeups.never_lose", "case.sv5")
def test_without_a_gateway_a_commit_in_the_log_alone_ends_a_wait(home: Path) -> None:
    with writing(home) as writer:
        writer.say("first")
        with BridgeProcess(home) as bridge:
            before = (home / "state.db").stat()
            cursor = bridge.call("events_poll")["next_cursor"]
            for number in range(20):
                waiting = bridge.begin("events_wait", after_cursor=cursor, timeout_ms=60_000)
                writer.say(f"m{number}")
                event = bridge.answer(waiting)["structuredContent"]["event"]
                assert event["content"] == f"m{number}"
                cursor = event["cursor"]
            after = (home / "state.db").stat()

    # Only the log was written.
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)


@requirement("bridge.events.cursor_never_zero", "design.wakeups.never_lose")
def test_a_store_that_is_made_later_is_seen(home: Path) -> None:
    with BridgeProcess(home) as bridge:
        assert bridge.call("conversations_list") == {"count": 0, "conversations": []}
        waiting = bridge.begin("events_wait", timeout_ms=60_000)
        bridge.call("events_poll")

        with writing(home) as writer:
            writer.say("born")
            event = bridge.answer(waiting)["structuredContent"]["event"]

        assert event["content"] == "born"
        assert bridge.call("conversations_list")["count"] == 1


@requirement("threat.s30")
def test_what_is_read_never_crosses_profiles(home: Path) -> None:
    other = home / "profiles" / "work"
    with writing(home) as mine, writing(other) as theirs:
        mine.say("of the default profile")
        theirs.say("of the other profile")
        with (
            BridgeProcess(home) as here,
            BridgeProcess(home, options=("-p", "work")) as there,
        ):
            for bridge, own, foreign in [(here, "default", "other"), (there, "other", "default")]:
                read = bridge.call("messages_read", session_key=KEY)
                told = bridge.call("events_poll", replay=True)
                for answer in (read, told):
                    assert f"of the {own} profile" in json.dumps(answer)
                    assert f"of the {foreign} profile" not in json.dumps(answer)


@requirement("threat.s30")
def test_two_users_of_one_group_never_see_each_others_words(home: Path) -> None:
    keys = [f"agent:main:telegram:group:-5:{person}" for person in (1, 2)]
    with writing(home) as writer, BridgeProcess(home) as bridge:
        for number in range(5):
            for person, key in enumerate(keys):
                writer.say(f"secret of {person}: {number}", key=key)
        for person, key in enumerate(keys):
            read = bridge.call("messages_read", session_key=key)
            told = bridge.call("events_poll", replay=True, session_key=key)
            own = [f"secret of {person}: {number}" for number in range(5)]
            assert [message["content"] for message in read["messages"]] == own
            assert [event["content"] for event in told["events"]] == own


@requirement("case.db5")
def test_a_bridge_that_ends_takes_nothing_from_who_writes(home: Path) -> None:
    with writing(home) as writer:
        writer.say("before")
        files = {name: (home / name).stat().st_ino for name in ("state.db-wal", "state.db-shm")}
        for end in (signal.SIGKILL, signal.SIGTERM):
            with BridgeProcess(home) as bridge:
                bridge.call("conversations_list")
                bridge.signal(end)
                bridge.wait()
        assert files == {name: (home / name).stat().st_ino for name in files}
        writer.say("after")

    with BridgeProcess(home) as bridge:
        read = bridge.call("messages_read", session_key=KEY)
    assert [message["content"] for message in read["messages"]] == ["before", "after"]


def test_a_broken_configuration_serves_nothing_and_is_told(home: Path) -> None:
    (home / "config.yaml").write_text("mcp_serve: {allow_approvals: [\n")

    done = hermes(home, "mcp", "serve")

    assert done.returncode == 1
    assert done.stdout == ""
    assert "config.yaml" in done.stderr
