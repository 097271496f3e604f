import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gateway.cli.application import HermesGroup
from gateway.cli.errors import NoSuch, guarded
from gateway.cli.invocation import Invocation
from gateway.cli.main import main
from gateway.domain.errors import GatewayNotRunning, NotFound
from tests.support.requirement import requirement

BIN = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HERMES_PROFILE", raising=False)
    monkeypatch.delenv("HERMES_DEBUG", raising=False)
    return tmp_path / "home"


def hermes(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "hermes"), *args],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_help_lists_every_command_without_importing_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr()
    assert all(name in printed.out for name in ("chat", "config", "demo-server"))
    assert printed.err == ""


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Commands:" in capsys.readouterr().out


def test_the_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from gateway.cli.main import main; main(['--help']);"
        "heavy = {'pydantic', 'ruamel', 'mcp', 'sqlalchemy', 'rich', 'prompt_toolkit', 'httpx',"
        "'asyncio'}; sys.exit(repr(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@requirement("numbers.help")
def test_help_starts_quickly() -> None:
    def seconds(*command: str) -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        return time.perf_counter() - start

    # The goal of 0.3 s is measured by bench/help.py; other work on the machine must not fail this.
    floor = min(seconds(sys.executable, "-c", "pass") for _ in range(3))
    ours = min(seconds(str(BIN / "hermes"), "--help") for _ in range(3))
    assert ours <= max(0.3, 12 * floor)


@requirement("cli.contract.streams")
@pytest.mark.parametrize("group", list(HermesGroup.lazy))
def test_every_command_explains_itself_on_stdout(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([group, "--help"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"Usage: hermes {group}")
    assert printed.err == ""


@requirement("cli.contract.exit_codes", "cli.contract.no_traceback")
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["confg"], 2),
        (["--nope"], 2),
        (["config"], 2),
        (["config", "nope"], 2),
        (["config", "set", "gateway.max_rounds"], 2),
        (["config", "path", "extra"], 2),
        (["-p"], 2),
        (["-p", "../evil", "config", "path"], 2),
        (["config", "set", "gateway.max_rounds", "many"], 1),
        (["config", "set", "..", "1"], 1),
        (["config", "set", "gateway", "[1"], 1),
        (["config", "set", "gateway.max_rounds.x", "1"], 1),
        (["config", "path"], 0),
    ],
)
def test_a_mistake_is_a_sentence_and_an_exit_code(
    args: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == code
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert bool(printed.err) == bool(code)
    assert bool(printed.out) == (not code)
    if code == 1:
        assert printed.err.count("\n") == 1
        assert printed.err.startswith("hermes: ")


@requirement("cli.contract.no_traceback", "config.syntax_error.at_start")
@pytest.mark.parametrize("command", ["show", "set"])
def test_a_broken_file_is_one_line_with_its_place(
    command: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("gateway:\n\tmax_rounds: 1\n")
    arguments = ["gateway.max_rounds", "2"] if command == "set" else []
    assert main(["config", command, *arguments]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(f"hermes: {home}/config.yaml:2:1: YAML syntax error")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


@requirement("cli.contract.no_traceback", "case.in6")
def test_a_home_that_cannot_be_used_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "file" / "home"))
    assert main(["config", "set", "gateway.max_rounds", "5"]) == 1
    assert "set HERMES_HOME to a directory" in capsys.readouterr().err
    monkeypatch.delenv("HERMES_HOME")
    monkeypatch.setenv("HOME", "/")
    assert main(["config", "path"]) == 1
    assert capsys.readouterr().err == (
        "hermes: home ~/.hermes: HOME is /; set HERMES_HOME to a directory you can write\n"
    )


def _raises(error: BaseException) -> object:
    raise error


@requirement("cli.contract.exit_codes")
@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (NoSuch("server", "notes"), 3, "hermes: there is no server notes\n"),
        (NotFound("question", "q1"), 3, None),
        (GatewayNotRunning("/h"), 1, "hermes: The gateway is not running.\n"),
        (
            ExceptionGroup("tasks", [GatewayNotRunning("/h")]),
            1,
            "hermes: The gateway is not running.\n",
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_says_how_the_call_ends(
    error: BaseException, code: int, sentence: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(lambda: _raises(error), Invocation()) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence is None or printed.err == sentence


@requirement("cli.contract.no_traceback", "threat.s19")
def test_a_fault_of_ours_is_a_sentence_and_the_log_has_the_rest(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / ".env").write_text("TOKEN=canary-7f3a9\n")
    fault = ZeroDivisionError("while using canary-7f3a9 \x1b[2J")
    assert guarded(lambda: _raises(fault), Invocation()) == 1
    printed = capsys.readouterr()
    assert printed.err == (
        "hermes: something went wrong on our side (ZeroDivisionError); "
        f"the detail is in {home}/logs/gateway.log\n"
    )
    log = (home / "logs" / "gateway.log").read_text()
    assert "ZeroDivisionError: while using *** [2J" in log
    monkeypatch.setenv("HERMES_DEBUG", "1")
    assert guarded(lambda: _raises(fault), Invocation()) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "canary" not in log + shown
    assert "\x1b" not in log + shown


@requirement("cli.contract.streams")
def test_a_reader_that_leaves_early_ends_it_quietly() -> None:
    done = subprocess.run(
        [
            "/usr/bin/env",
            "bash",
            "-c",
            f"{BIN}/hermes config show | head -n 0; echo ${{PIPESTATUS[0]}}",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.strip() in {"0", "1"}


@requirement("case.in5", "cli.contract.streams")
@pytest.mark.parametrize("command", ["path", "show", "check"])
def test_piped_json_is_all_there_is_on_stdout(command: str, home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("gatewey: {}\nmcp_servers: {bad: null}\n")
    done = hermes("config", command, "--json")
    assert isinstance(json.loads(done.stdout), dict)
    assert "Traceback" not in done.stderr


@requirement("config.home.location")
@pytest.mark.parametrize("way", ["option", "short", "environment"])
def test_a_profile_moves_the_home(
    way: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if way == "environment":
        monkeypatch.setenv("HERMES_PROFILE", "work")
    options = {"option": ["--profile", "work"], "short": ["-p", "work"], "environment": []}[way]
    assert main([*options, "config", "path"]) == 0
    assert capsys.readouterr().out == f"{home}/profiles/work/config.yaml\n"


@requirement("cli.completion")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_a_shell_calls_hermes_back(shell: str) -> None:
    script = hermes("--show-completion", shell)
    assert script.returncode == 0
    assert "_HERMES_COMPLETE" in script.stdout
    assert f"complete_{shell}" in script.stdout
    found = hermes(
        _HERMES_COMPLETE=f"complete_{shell}",
        _TYPER_COMPLETE_ARGS="hermes con",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        _TYPER_COMPLETE_WORD_TO_COMPLETE="con",
        COMP_WORDS="hermes con",
        COMP_CWORD="1",
    )
    assert "config" in found.stdout
    assert "chat" not in found.stdout
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=script.stdout, text=True, check=False)
        assert checked.returncode == 0


@requirement("cli.completion")
def test_bash_completes_commands_of_a_group() -> None:
    script = (
        "source <(hermes --show-completion bash); COMP_WORDS=(hermes config s); COMP_CWORD=2; "
        '_hermes_completion hermes; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["/usr/bin/env", "bash", "-c", script],
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.split() == ["show", "set"]
