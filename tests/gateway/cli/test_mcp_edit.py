"""Servers added, removed and switched from a shell, with nobody at a terminal unless it says so."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.cli.main import main
from gateway.cli.rest_of_line import split
from gateway.config.document import read_document
from tests.support.requirement import requirement

SERVER: Final = str(Path(__file__).parents[2] / "fakes" / "mcp" / "legacy_server.py")
BIN: Final = Path(sys.executable).parent
RUNS: Final = (sys.executable, "--args", "-S", SERVER)

WRITTEN: Final = """\
# Mine.
gateway:
  max_rounds: 20   # enough

x-notes: {owner: 'me'}   # a foreign key

mcp_servers:
  # The notes.
  notes:
    command: hermes
    args: [demo-server]
    env: {TOKEN: "${NOTES_TOKEN}", SHARED: "${SHARED}"}
  other:   # of somebody else
    command: other
    env: {SHARED: "${SHARED}"}
    tools: {include: ["a*", b]}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.delenv("HERMES_PROFILE", raising=False)
    return tmp_path


def entries(home: Path) -> dict[str, Any]:
    document: Any = read_document(home / "config.yaml") or {}
    found: dict[str, Any] = document.get("mcp_servers") or {}
    return found


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@requirement("mcp_cli.add", "mcp_cli.no_tty")
def test_a_server_is_tried_and_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--trust", "untrusted", "--env", "A=1", "--json", "--command", *RUNS)
    assert main(["mcp", "add", "notes", *options]) == 0

    found = said(capsys)
    assert (found["server"], found["written"], found["test"]["ok"]) == ("notes", True, True)
    assert "echo" in [tool["name"] for tool in found["test"]["tools"]]
    assert entries(home)["notes"] == {
        "command": sys.executable,
        "args": ["-S", SERVER],
        "env": {"A": "1"},
        "trust": "untrusted",
    }


@requirement("mcp_cli.add")
def test_a_server_that_cannot_be_connected_is_written_too_and_that_is_said(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "add", "gone", "--command", "no-such-program"]) == 0

    shown = capsys.readouterr()
    assert "command not found: no-such-program" in shown.err
    assert "could not be connected, and is written anyway" in shown.err
    assert entries(home) == {"gone": {"command": "no-such-program"}}


@requirement("mcp_cli.add")
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ((), {"command": "codex", "args": ["mcp-server"]}),
        (("--command", "mine"), {"command": "mine"}),
        (("--args", "serve"), {"command": "codex", "args": ["serve"]}),
        (
            ("--env", "K=v", "--trust", "untrusted"),
            {
                "command": "codex",
                "args": ["mcp-server"],
                "env": {"K": "v"},
                "trust": "untrusted",
            },
        ),
    ],
)
def test_a_preset_fills_in_the_command_and_its_arguments_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], expected: object
) -> None:
    # None of these programs is to be found, wherever this runs.
    monkeypatch.setenv("PATH", str(home))

    assert main(["mcp", "add", "my-codex", "--preset", "codex", *more]) == 0
    assert entries(home)["my-codex"] == expected


def test_a_remote_server_keeps_its_headers_and_how_to_sign_in(home: Path) -> None:
    url = "http://127.0.0.1:9/mcp"
    options = ("--header", "Authorization: Bearer ${TOKEN}", "--header", "X-Team: a: b")
    assert main(["mcp", "add", "far", "--url", url, *options, "--auth", "header"]) == 0
    assert main(["mcp", "add", "signed", "--url", url, "--auth", "oauth"]) == 0

    assert entries(home) == {
        "far": {"url": url, "headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "a: b"}},
        "signed": {"url": url, "auth": "oauth"},
    }


@requirement("mcp_cli.add.never_overwrites")
def test_a_name_that_is_taken_stays_as_it_is_unless_forced(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "config.yaml").write_text(WRITTEN)

    assert main(["mcp", "add", "notes", "--command", "another"]) == 1
    assert capsys.readouterr().err == ("hermes: notes is configured already; --force replaces it\n")
    assert (home / "config.yaml").read_text() == WRITTEN
    assert main(["mcp", "add", "notes", "--command", "another", "--force"]) == 0
    assert entries(home)["notes"] == {"command": "another"}


@requirement("case.cf5")
def test_everything_else_in_the_file_stays_when_servers_come_and_go(home: Path) -> None:
    (home / "config.yaml").write_text(WRITTEN)

    assert main(["mcp", "add", "a.b", "--command", "no-such-program"]) == 0
    added = (home / "config.yaml").read_text()
    assert main(["mcp", "disable", "a.b"]) == 0
    assert entries(home)["a.b"] == {"command": "no-such-program", "enabled": False}
    assert main(["mcp", "remove", "a.b", "--yes"]) == 0

    assert added == WRITTEN + "  a.b:\n    command: no-such-program\n"
    assert (home / "config.yaml").read_text() == WRITTEN


def test_removing_says_which_variables_nobody_uses_any_more(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "config.yaml").write_text(WRITTEN)
    (home / ".env").write_text("NOTES_TOKEN=x\nSHARED=y\nOTHER=z\n")

    assert main(["mcp", "remove", "notes", "--json"]) == 0

    assert said(capsys) == {"server": "notes", "removed": True, "left_in_env": ["NOTES_TOKEN"]}
    assert list(entries(home)) == ["other"]
    assert "# of somebody else" in (home / "config.yaml").read_text()


@requirement("mcp_cli.no_tty")
def test_without_a_terminal_nothing_is_removed_without_a_yes(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "config.yaml").write_text(WRITTEN)

    assert main(["mcp", "remove", "notes"]) == 1
    assert "--yes removes it" in capsys.readouterr().err
    assert (home / "config.yaml").read_text() == WRITTEN


@requirement("mcp_cli.no_tty")
def test_a_server_is_switched_off_and_on(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "config.yaml").write_text(WRITTEN)

    assert main(["mcp", "disable", "other", "--json"]) == 0
    assert said(capsys) == {"server": "other", "enabled": False}
    assert entries(home)["other"]["enabled"] is False
    assert main(["mcp", "enable", "other"]) == 0
    assert entries(home)["other"]["enabled"] is True
    assert main(["mcp", "list", "--json"]) == 0


@pytest.mark.parametrize("command", ["remove", "enable", "disable"])
def test_a_server_that_is_not_there_is_exit_code_three(home: Path, command: str) -> None:
    assert main(["mcp", command, "nobody"]) == 3
    assert not (home / "config.yaml").exists()


@requirement("case.in2")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--env", "A=1", "--env", "B=2"), {"A": "1", "B": "2"}),
        (("--env", "A=1", "B=2", "C=x=y"), {"A": "1", "B": "2", "C": "x=y"}),
        (("--env", "A="), {"A": ""}),
    ],
)
def test_every_variable_that_is_given_is_kept(
    home: Path, args: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert main(["mcp", "add", "s", "--command", "no-such-program", *args]) == 0
    assert entries(home)["s"]["env"] == expected


@requirement("case.in2")
@pytest.mark.parametrize(
    "args",
    [
        ("--command", "x", "--env", "BAD"),
        ("--command", "x", "--env", "=1"),
        ("--command", "x", "--env", "A=1", "BAD"),
        ("--url", "http://x/mcp", "--header", "BAD"),
        ("--url", "http://x/mcp", "--command", "x"),
        ("--url", "http://x/mcp", "--env", "A=1"),
        ("--url", "http://x/mcp", "--args", "x"),
        ("--url", "http://x/mcp", "--auth", "header"),
        ("--url", "http://x/mcp", "--preset", "codex"),
        ("--command", "x", "--header", "A: 1"),
        ("--preset", "nobody"),
        ("--command", "x", "--trust", "some"),
        (),
    ],
)
def test_what_makes_no_entry_is_a_usage_error_and_writes_nothing(
    home: Path, args: tuple[str, ...]
) -> None:
    assert main(["mcp", "add", "s", *args]) == 2
    assert not (home / "config.yaml").exists()


def test_a_name_that_is_none_changes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", "add", "a b", "--command", "x"]) == 1
    assert "nothing was changed: mcp_servers" in capsys.readouterr().err
    assert not (home / "config.yaml").exists()


@requirement("case.in3")
@pytest.mark.parametrize(
    ("line", "ours", "rest"),
    [
        ("--command docker --args mcp run --profile p", "--command docker", "mcp run --profile p"),
        ("--command npx --args -y pkg", "--command npx", "-y pkg"),
        ("--command npx --args -- -y pkg", "--command npx", "-y pkg"),
        ("--command npx --args -- -- -y", "--command npx", "-- -y"),
        ("--command x --args --args --json", "--command x", "--args --json"),
        ("--command x --args", "--command x", ""),
    ],
)
def test_the_rest_of_the_line_is_another_programs(line: str, ours: str, rest: str) -> None:
    assert split(line.split()) == (ours.split(), tuple(rest.split()))


@requirement("case.in3")
def test_the_rest_of_the_line_reaches_the_child_as_it_is(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = home / "shown"
    script = home / "show.py"
    script.write_text(
        f"import sys, pathlib; pathlib.Path({str(shown)!r}).write_text(chr(10).join(sys.argv[1:]))"
    )
    rest = ["-y", "--env", "A=1", "--json", "--", "--help", "a b", ""]
    assert main(["mcp", "add", "s", "--command", sys.executable, "--args", str(script), *rest]) == 0

    assert shown.read_text().split("\n") == rest
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("args", "question"),
    [
        (("remove", "notes"), "Remove notes from"),
        (("add", "mine", "--preset", "codex"), "connect to it (codex mcp-server)?"),
        (("add", "far", "--url", "http://x/mcp"), "connect to it (http://x/mcp)?"),
        (("add", "mine", "--command", "x", "--args", "a b", "-c"), "(x 'a b' -c)?"),
    ],
)
def test_at_a_terminal_it_is_asked_for_first(
    home: Path, args: tuple[str, ...], question: str
) -> None:
    (home / "config.yaml").write_text(WRITTEN)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(BIN / "hermes"), "mcp", *args],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "HERMES_HOME": str(home)},
    ) as command:
        os.close(theirs)
        text = b""
        while b"[y/N]" not in text:
            text += os.read(ours, 1_024)
        os.write(ours, b"n\n")
        assert command.wait(30) == 1
    os.close(ours)

    assert question in text.decode()
    assert (home / "config.yaml").read_text() == WRITTEN
