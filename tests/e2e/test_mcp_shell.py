"""`hermes mcp` as a script runs it: processes of their own, no terminal, exit codes and JSON."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.config.document import read_document
from tests.support.chat import ROOT, hermes
from tests.support.requirement import requirement

SERVER: Final = str(ROOT / "tests" / "fakes" / "mcp" / "legacy_server.py")
MINE: Final = "# Mine.\nx-notes: {a: 1}   # keep\n"
RUNS: Final = ("--env", "A=1", "B=2", "--env", "C=3", "--args", "--", "-S", SERVER)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a server `s` that was added from a shell."""
    (tmp_path / "config.yaml").write_text(MINE)
    done = hermes(tmp_path, "mcp", "add", "s", "--json", "--command", sys.executable, *RUNS)
    assert (done.returncode, json.loads(done.stdout)["test"]["ok"]) == (0, True)
    return tmp_path


def entries(home: Path) -> dict[str, Any]:
    document: Any = read_document(home / "config.yaml")
    found: dict[str, Any] = document["mcp_servers"]
    return found


@requirement("mcp_cli.add", "mcp_cli.no_tty", "case.cf5", "case.in2", "case.in3")
def test_an_added_server_stands_below_what_was_there(home: Path) -> None:
    assert (home / "config.yaml").read_text().startswith(MINE)
    assert entries(home)["s"] == {
        "command": sys.executable,
        "args": ["-S", SERVER],
        "env": {"A": "1", "B": "2", "C": "3"},
    }


@requirement("mcp_cli.add.never_overwrites")
def test_a_taken_name_is_exit_code_one_and_changes_no_byte(home: Path) -> None:
    before = (home / "config.yaml").read_bytes()

    again = hermes(home, "mcp", "add", "s", "--command", "another", "--yes")

    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "hermes: s is configured already; --force replaces it\n"
    assert (home / "config.yaml").read_bytes() == before


@requirement("mcp_cli.test", "design.mcp.json")
def test_a_test_ends_with_zero_one_or_three(home: Path) -> None:
    hermes(home, "mcp", "add", "gone", "--command", "no-such-program", "--yes")

    codes: dict[str, int] = {}
    for name in ("s", "gone", "nobody"):
        done = hermes(home, "mcp", "test", name, "--json")
        codes[name] = done.returncode
        report = json.loads(done.stdout)
        assert (report["server"], report["ok"]) == (name, name == "s")
        assert bool(report.get("error")) is (name != "s")

    assert codes == {"s": 0, "gone": 1, "nobody": 3}


@requirement("mcp_cli.test", "design.mcp.call")
def test_a_call_is_made_by_a_test_and_by_hand(home: Path) -> None:
    asked = ("echo", '{"text": "hi"}')
    tested = hermes(home, "mcp", "test", "s", "--json", "--call", *asked)
    called = hermes(home, "mcp", "call", "s", *asked)

    assert (tested.returncode, called.returncode) == (0, 0)
    assert "echo works with these arguments" in json.loads(tested.stdout)["proved"]
    found = json.loads(called.stdout)
    assert (found["tool"], found["state"], found["text"]) == ("echo", "ok", "hi")


@requirement("mcp_cli.no_tty")
@pytest.mark.parametrize("option", ["--yes", "--json"])
def test_every_change_is_made_without_a_terminal(home: Path, option: str) -> None:
    off = hermes(home, "mcp", "disable", "s", option)
    assert (off.returncode, entries(home)["s"]["enabled"]) == (0, False)
    on = hermes(home, "mcp", "enable", "s", option)
    assert (on.returncode, entries(home)["s"]["enabled"]) == (0, True)
    gone = hermes(home, "mcp", "remove", "s", option)
    assert gone.returncode == 0

    left = hermes(home, "mcp", "list", "--json")
    assert (left.returncode, json.loads(left.stdout)) == (0, {"servers": []})
    again = hermes(home, "mcp", "remove", "s", option)
    assert again.returncode == 3
