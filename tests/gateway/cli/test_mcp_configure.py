"""Choosing a server's tools from a shell."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from gateway.config.document import read_document
from tests.gateway.cli.conftest import Configured
from tests.support.requirement import requirement

BIN = Path(sys.executable).parent


def tools_of(configured: Configured) -> Any:
    document: Any = read_document(configured.home / "config.yaml")
    return document["mcp_servers"]["s"].get("tools")


def write(configured: Configured, tools: str) -> str:
    """Write an entry as somebody would, comments and all; return the file's text."""
    server: Any = configured.server()
    text = (
        "mcp_servers:\n"
        "  s:\n"
        f"    command: {server['command']}\n"
        f"    args: {json.dumps(server['args'])}\n"
        f"{tools}"
    )
    (configured.home / "config.yaml").write_text(text)
    return text


@requirement("case.tn8")
def test_a_choice_keeps_the_globs_it_did_not_touch(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        configured,
        "    tools:\n      exclude:   # noisy\n        - hidden*\n        - write*\n        - zz*\n",
    )

    assert main(["mcp", "configure", "s", "--off", "echo", "--on", "write", "--json"]) == 0

    report = json.loads(capsys.readouterr().out)
    others = ["write_again", "write_bare", "write_quietly"]
    assert tools_of(configured) == {"exclude": ["hidden*", *others, "zz*", "echo"]}
    assert report["filter"] == {"include": None, "exclude": ["hidden*", *others, "zz*", "echo"]}
    assert "write" in report["tools"]
    assert not {"echo", "hidden", *others} & set(report["tools"])


@requirement("case.tn8")
def test_a_choice_that_changes_nothing_writes_nothing(configured: Configured) -> None:
    text = write(configured, "    tools: {include: ['e*', 'w*'], policy: {'*': ask}}\n")

    assert main(["mcp", "configure", "s", "--on", "echo"]) == 0
    assert (configured.home / "config.yaml").read_text() == text


@requirement("mcp_cli.no_tty")
def test_with_a_yes_the_choice_stays_as_it_is(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    text = write(configured, "    tools: {include: [echo]}\n")

    assert main(["mcp", "configure", "s", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tools"] == ["echo"]
    assert (configured.home / "config.yaml").read_text() == text


def test_everything_chosen_is_no_filter(configured: Configured) -> None:
    write(configured, "    tools: {exclude: [echo], policy: {'*': ask}}\n")

    assert main(["mcp", "configure", "s", "--on", "echo"]) == 0
    assert tools_of(configured) == {"policy": {"*": "ask"}}


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("nobody", "--on", "echo"), 3, "there is no server nobody"),
        (("s", "--on", "nothing"), 3, "there is no tool nothing at s"),
        (("s",), 1, "say which: --on TOOL, --off TOOL"),
    ],
)
def test_what_cannot_be_chosen_changes_nothing(
    configured: Configured,
    capsys: pytest.CaptureFixture[str],
    args: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    text = write(configured, "")

    assert main(["mcp", "configure", *args]) == code
    assert said in capsys.readouterr().err
    assert (configured.home / "config.yaml").read_text() == text


def test_a_server_that_cannot_be_connected_keeps_its_filter(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(s=configured.server("--exit-at-start", "3"))

    assert main(["mcp", "configure", "s", "--off", "echo"]) == 1
    assert "nothing was changed: s cannot be connected" in capsys.readouterr().err
    assert tools_of(configured) is None


def test_at_a_terminal_tools_are_switched_by_their_numbers(configured: Configured) -> None:
    write(configured, "    tools: {include: [echo, write]}\n")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(BIN / "hermes"), "mcp", "configure", "s"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ,
    ) as command:
        os.close(theirs)
        shown = until(ours, "leave it as it is")
        number = next(line.split()[0] for line in shown.splitlines() if line.endswith("[x] echo"))
        os.write(ours, f"{number}\n".encode())
        shown = until(ours, "leave it as it is")
        assert any(line.endswith("[ ] echo") for line in shown.splitlines())
        os.write(ours, b"\n")
        until(ours, "written to")
        assert command.wait(30) == 0
    os.close(ours)

    assert tools_of(configured) == {"include": ["write"]}


def until(terminal: int, words: str) -> str:
    """Return what the terminal shows up to these words."""
    text = ""
    while words not in text:
        text += os.read(terminal, 1_024).decode()
    return text
