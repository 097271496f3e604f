import json
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.gateway.cli.conftest import Configured
from tests.support.eventually import eventually
from tests.support.requirement import requirement

BIN = Path(sys.executable).parent


@requirement("design.mcp.json")
def test_the_list_names_every_entry_also_the_broken_ones(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(
        notes=configured.server(trust="untrusted", tools={"include": ["e*"]}),
        off=configured.server(enabled=False),
        bad={"args": ["x"]},
    )
    assert main(["mcp", "list", "--json"]) == 0
    notes, off, bad = json.loads(capsys.readouterr().out)["servers"]
    assert notes == {
        "name": "notes",
        "transport": "stdio",
        "enabled": True,
        "trust": "untrusted",
        "auth": "none",
        "sign_in": None,
        "state": "closed",
        "reason": "no running gateway has it",
        "tools": None,
        "filter": {"include": ["e*"], "exclude": []},
    }
    assert (off["state"], off["enabled"]) == ("disabled", False)
    assert bad["state"] == "skipped"
    assert "has no command" in bad["reason"]
    assert main(["mcp", "list"]) == 0
    assert capsys.readouterr().out.count("\n") == 3
    assert configured.started == 0


def test_the_list_shows_what_the_running_gateway_has(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(notes=configured.server(tools={"include": ["echo", "write"]}))
    with subprocess.Popen(
        [str(BIN / "hermes"), "gateway", "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as gateway:
        try:
            assert gateway.stdout is not None
            assert gateway.stdout.readline().startswith("hermes gateway ready")
            eventually(lambda: _listed(capsys)["state"] == "ready", seconds=30)
            assert _listed(capsys)["tools"] == 2
        finally:
            gateway.terminate()
    assert configured.started == 1


def _listed(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["mcp", "list", "--json"]) == 0
    (server,) = json.loads(capsys.readouterr().out)["servers"]
    return server


def test_an_empty_list_is_said_on_stderr(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    del configured
    assert main(["mcp", "list"]) == 0
    assert tuple(capsys.readouterr()) == ("", "no MCP server is configured\n")


@requirement("case.in5", "design.mcp.json", "mcp_cli.test")
@pytest.mark.parametrize(
    ("script", "era", "version"),
    [
        ("legacy_server.py", "legacy", "2025-11-25"),
        ("modern_server.py", "modern", "2026-07-28"),
    ],
)
def test_piping_a_test_gives_json_and_nothing_else(
    script: str, era: str, version: str, configured: Configured
) -> None:
    configured.write(notes=configured.server(script=script))
    done = subprocess.run(
        [str(BIN / "hermes"), "mcp", "test", "notes", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert (report["server"], report["ok"]) == ("notes", True)
    assert (report["era"], report["protocol_version"]) == (era, version)
    assert report["connect_ms"] > 0
    assert {"name": "echo", "alias": "mcp__notes__echo", "read_only": True} in report["tools"]
    assert {"name": "write", "alias": "mcp__notes__write", "read_only": False} in report["tools"]
    assert "error" not in report


@requirement("case.cf2")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_test_warns_of_an_unset_variable_with_its_server_and_key(
    options: list[str], configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(
        wiki=configured.server(env={"WIKI_URL": "${WIKI_URL}"}),
        other=configured.server(env={"OTHER": "${OTHER_URL}"}),
    )
    assert main(["mcp", "test", "wiki", *options]) == 0
    printed = capsys.readouterr()
    warnings = json.loads(printed.out)["warnings"] if options else printed.err.splitlines()
    (warning,) = warnings
    assert "variable WIKI_URL is not set (server wiki, key env.WIKI_URL)" in warning


def test_an_unset_variable_reaches_the_server_as_it_is_written(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(wiki=configured.server(env={"WIKI_URL": "${WIKI_URL}"}))
    assert main(["mcp", "call", "wiki", "environment", "{}"]) == 0
    printed = capsys.readouterr()
    assert "${WIKI_URL}" in json.loads(printed.out)["text"]
    assert "variable WIKI_URL is not set" in printed.err


def test_a_test_says_what_was_left_out(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    server = configured.server("--broken-tools", tools={"exclude": ["write*"]}, enabled=False)
    configured.write(notes=server)
    assert main(["mcp", "test", "notes"]) == 0
    printed = capsys.readouterr()
    assert "filtered: exclude write*" in printed.err
    assert "without an input schema" in printed.err
    assert "it is not enabled" in printed.err
    assert "proved: it starts; it agrees on a protocol; it lists its tools\n" in printed.out
    assert "not proved: that a tool works" in printed.out


@requirement("mcp_cli.test")
def test_a_server_that_cannot_start_fails_the_test_at_the_first_try(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    (configured.home / ".env").write_text("TOKEN=licence\n")
    configured.write(notes=configured.server("--exit-at-start", "3"))
    assert main(["mcp", "test", "notes", "--json"]) == 1
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert report["ok"] is False
    assert "cannot start: no *** found" in report["error"].replace("[31m", "").replace("[0m", "")
    assert "licence" not in printed.out + printed.err
    assert configured.started == 1
    assert main(["mcp", "test", "notes"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("notes: ")
    assert "Traceback" not in printed.err


@requirement("mcp_cli.test")
@pytest.mark.parametrize("command", [["test", "bad"], ["call", "bad", "echo", "{}"]])
def test_a_broken_entry_says_why(
    command: list[str], configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(bad={"args": ["x"]})
    assert main(["mcp", *command]) == 1
    assert "mcp_servers.bad: has no command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["test", "nope"], 3),
        (["test", "nope", "--json"], 3),
        (["call", "nope", "echo", "{}"], 3),
        (["test"], 2),
        (["call", "notes", "echo", "[1]"], 2),
        (["call", "notes", "echo", "{"], 2),
        (["call", "notes", "echo", '{"a": 1, "a": 2}'], 2),
        (["test", "notes", "--call", "echo", "1"], 2),
        (["call", "off", "echo", "{}"], 1),
    ],
)
def test_what_cannot_be_asked_starts_nothing(
    args: list[str], code: int, configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(notes=configured.server(), off=configured.server(enabled=False))
    assert main(["mcp", *args]) == code
    printed = capsys.readouterr()
    assert printed.err
    assert "Traceback" not in printed.err
    assert not printed.out or isinstance(json.loads(printed.out), dict)
    assert configured.started == 0


@requirement("mcp_cli.test")
@pytest.mark.parametrize(
    ("call", "code"), [(["echo", '{"text": "hi"}'], 0), (["fail", "{}"], 1), (["nope", "{}"], 1)]
)
def test_a_test_with_a_call_is_only_as_good_as_the_call(
    call: list[str], code: int, configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(notes=configured.server())
    assert main(["mcp", "test", "notes", "--call", *call, "--json"]) == code
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is (code == 0)
    assert report["call"]["state"] == ("ok" if code == 0 else "error")
    assert ("error" in report) is (code != 0)


@requirement("design.mcp.call")
def test_a_call_prints_its_result_as_json_and_is_logged(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(notes=configured.server())
    assert main(["mcp", "call", "notes", "mcp__notes__echo", '{"text": "hi"}']) == 0
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert (result["server"], result["state"], result["text"]) == ("notes", "ok", "hi")
    assert printed.err == ""
    log = (configured.home / "logs" / "agent.log").read_text()
    assert "tool_call conversation=cli server=notes tool=echo" in log


@pytest.mark.parametrize("action", ["ask", "deny"])
def test_a_call_that_a_policy_holds_back_contacts_nobody(
    action: str, configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(notes=configured.server(tools={"policy": {"write": action}}))
    assert main(["mcp", "call", "notes", "write", '{"text": "x"}']) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["state"] == "refused"
    assert printed.err.startswith("hermes: write was not run: ")
    assert (configured.started, configured.ran) == (0, [])


@requirement("design.mcp.call", "threat.s8", "case.ap6")
@pytest.mark.parametrize("tool", ["write", "mcp__notes__write", "write_quietly"])
def test_a_write_of_an_untrusted_server_does_not_run_without_a_yes(
    tool: str, configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(notes=configured.server(trust="untrusted"))
    assert main(["mcp", "call", "notes", tool, '{"text": "x"}']) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["state"] == "refused"
    assert "--yes allows it" in printed.err
    assert configured.ran == []


@requirement("design.mcp.call")
def test_a_yes_runs_the_call_once(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(notes=configured.server(trust="untrusted"))
    assert main(["mcp", "call", "notes", "write", '{"text": "x"}', "--yes"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "ok"
    assert (configured.started, len(configured.ran)) == (1, 1)


def test_a_yes_does_not_override_a_policy_that_denies(configured: Configured) -> None:
    configured.write(notes=configured.server(tools={"policy": {"wr*": "deny"}}))
    assert main(["mcp", "call", "notes", "mcp__notes__write", '{"text": "x"}', "--yes"]) == 1
    assert configured.ran == []


def test_a_form_of_a_called_tool_is_declined(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(notes=configured.server())
    assert main(["mcp", "call", "notes", "order", "{}"]) == 0
    assert "decline" in json.loads(capsys.readouterr().out)["text"]


@pytest.mark.parametrize(("typed", "code", "runs"), [("y", 0, 1), ("", 1, 0), ("\x04", 1, 0)])
def test_at_a_terminal_the_call_is_shown_and_asked_for(
    typed: str, code: int, runs: int, configured: Configured
) -> None:
    configured.write(notes=configured.server(trust="untrusted"))
    ours, theirs = pty.openpty()
    arguments = json.dumps({"text": "a\u202eb", "more": "x" * 3000})
    with subprocess.Popen(
        [str(BIN / "hermes"), "mcp", "call", "notes", "write", arguments],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as command:
        os.close(theirs)
        shown = _read_until(ours, b"[y/N]")
        os.write(ours, typed.encode() if typed == "\x04" else f"{typed}\n".encode())
        rest = threading.Thread(target=_drain, args=(ours,))
        rest.start()
        out, _ = command.communicate(timeout=60)
        rest.join(timeout=60)
    os.close(ours)
    assert command.returncode == code
    assert json.loads(out)["state"] == ("ok" if code == 0 else "refused")
    assert "Server notes wants to run write with" in shown
    assert "a\\u202eb" in shown
    assert "x" * 3000 in shown
    assert len(configured.ran) == runs


def _read_until(terminal: int, wanted: bytes) -> str:
    seen = b""
    while wanted not in seen:
        seen += os.read(terminal, 4096)
    return seen.decode()


def _drain(terminal: int) -> None:
    """Read until the other side is closed, which Linux reports as an error."""
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        return
