"""Where the chat's lines come from and go to, when that is no person and no plain pipe."""

import subprocess
from pathlib import Path

from tests.support.chat import HERMES, environment, hermes
from tests.support.requirement import requirement


def shell(home: Path, redirected: str) -> "subprocess.CompletedProcess[str]":
    command = f'"$0" -m gateway.cli.main chat {redirected}'
    return subprocess.run(
        ["/bin/sh", "-c", command, HERMES[0]],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@requirement("design.terminal.pipe")
def test_no_input_at_all_ends_the_chat_at_once(tmp_path: Path) -> None:
    empty = shell(tmp_path, "< /dev/null")
    closed = shell(tmp_path, "<&-")

    assert (empty.returncode, empty.stdout) == (0, "")
    assert (closed.returncode, closed.stdout) == (0, "")


@requirement("design.terminal.pipe")
def test_lines_of_a_file_are_answered_one_after_another(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("/whoami\n/approvals\n/whoami")

    done = shell(tmp_path, f"< {lines}")

    assert done.returncode == 0
    assert done.stdout.count("terminal:local") == 2


@requirement("cli.contract.no_traceback")
def test_what_cannot_be_written_is_said_and_shown_at_the_next_start(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("/whoami\n")

    full = shell(tmp_path, f"< {lines} > /dev/full")
    later = hermes(tmp_path, "chat")

    assert full.returncode == 1
    assert "cannot be written: No space left on device" in full.stderr
    assert "Traceback" not in full.stderr
    assert "shown again" in later.stdout
    assert "terminal:local" in later.stdout
