"""What a stdio server's process gets of ours: the whole list, through the real program."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e.house import FAKES, House
from tests.mcp_host.hosting import is_alive
from tests.support.chat import HERMES, environment
from tests.support.eventually import eventually
from tests.support.requirement import requirement

OURS = {
    "FOO_TOKEN": "x",
    "TELEGRAM_BOT_TOKEN": "123:abc",
    "OPENAI_API_KEY": "sk-none",
    "SLACK_BOT_TOKEN": "xoxb-none",
    "LD_LIBRARY_PATH": "/opt/none",
    "LC_ALL": "C.UTF-8",
    "XDG_CONFIG_HOME": "/opt/none",
    "TZ": "UTC",
}
BASELINE = {"PATH", "HOME", "TERM", "LC_ALL", "XDG_CONFIG_HOME", "TZ"}


def surroundings(
    house: House, keys: Mapping[str, Any], *, log_level: str = "info"
) -> tuple[Mapping[str, Any], "subprocess.CompletedProcess[str]"]:
    """Call a tool of a server through `hermes mcp call`; return what its process had."""
    found = house.file("surroundings")
    house.serve("--surroundings", str(found), trust="full", **keys)
    house.configure(guided=True, logging={"level": log_level})
    given = environment(house.path, OURS)
    given.pop("LANG", None)
    given.pop("TMPDIR", None)
    read, write = os.pipe()
    try:
        os.set_inheritable(read, True)
        done = subprocess.run(
            [*HERMES, "mcp", "call", "box", "echo", '{"text": "hello"}'],
            env=given,
            pass_fds=[read],
            cwd=house.path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(read)
        os.close(write)
    has: Mapping[str, Any] = json.loads(found.read_text()) if found.exists() else {}
    return has, done


@requirement("threat.s18", "case.ms7")
@pytest.mark.parametrize(
    ("keys", "more"),
    [
        ({}, {}),
        ({"env": {}}, {}),
        ({"env": {"FOO": "${FOO_TOKEN}", "PORT": 80}}, {"FOO": "x", "PORT": "80"}),
    ],
    ids=["no env", "empty env", "env"],
)
def test_a_server_gets_the_baseline_its_own_variables_and_three_descriptors(
    house: House, keys: dict[str, object], more: dict[str, str]
) -> None:
    has, done = surroundings(house, keys)

    assert done.returncode == 0, done.stderr
    ours = {**environment(house.path), **OURS}
    # The interpreter of the fake adds LC_CTYPE where the locale is C.
    inside = {name: value for name, value in has["env"].items() if name != "LC_CTYPE"}
    assert inside == {**{name: ours[name] for name in BASELINE}, **more}
    assert list(has["fds"]) == ["0", "1", "2"]
    assert set(has["fds"].values()) <= {"pipe", "socket"}


@requirement("case.ms7")
def test_when_a_server_fails_a_debug_line_names_what_it_did_not_get(house: House) -> None:
    keys = {"args": [str(FAKES / "no_such_script.py")]}
    _, done = surroundings(house, keys, log_level="debug")

    assert done.returncode != 0
    withheld = [line for line in (house.log + done.stderr).splitlines() if "withheld" in line]
    assert withheld
    assert "FOO_TOKEN" in withheld[0]
    assert "TELEGRAM_BOT_TOKEN" in withheld[0]
    assert not any(value in line for line in withheld for value in ("123:abc", "sk-none"))


@requirement("mcp.stdio.group_ends")
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_of_a_server_outlives_the_program_that_started_it(
    house: House, sign: signal.Signals
) -> None:
    child, starts = house.file("child"), house.file("starts")
    house.serve("--deaf", "--child", str(child), "--starts", str(starts))
    house.configure(guided=True)
    with house.chat() as chat:
        eventually(child.exists, what="the server's own child")
        pids = [int(starts.read_text()), int(child.read_text())]
        assert all(map(is_alive, pids))
        os.kill(chat.pid, sign)
        eventually(lambda: not any(map(is_alive, pids)), what="the end of both")
