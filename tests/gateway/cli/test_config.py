import json
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.support.requirement import requirement

TEXT = "# Mine.\nmodel: openai:gpt-5-mini   # the model\nx-foreign: {a: 1}\ngateway:\n  max_rounds: 20\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "canary-openai-key")
    (tmp_path / "config.yaml").write_text(TEXT)
    return tmp_path


@requirement("cli.config.commands")
def test_path_prints_the_file(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{home}/config.yaml\n"
    assert main(["config", "path", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": f"{home}/config.yaml"}


@requirement("cli.config.commands", "threat.s19")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_show_prints_what_is_in_force_without_secrets(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "show", *options]) == 0
    printed = capsys.readouterr()
    assert "gpt-5-mini" in printed.out
    assert "max_rounds" in printed.out
    assert "turn_timeout" in printed.out
    assert "••••" in printed.out
    assert "canary" not in printed.out + printed.err


@requirement("cli.config.commands", "config.writer.round_trip_set")
def test_set_changes_one_key_and_keeps_the_rest(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "set", "gateway.max_rounds", "5"]) == 0
    assert (home / "config.yaml").read_text() == TEXT.replace("20", "5")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "set gateway.max_rounds" in printed.err


def test_set_refuses_a_value_that_cannot_be_used_and_writes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "set", "gateway.max_rounds", "-5"]) == 1
    assert (home / "config.yaml").read_text() == TEXT
    assert "nothing was changed: gateway.max_rounds" in capsys.readouterr().err


def test_set_warns_about_a_key_nobody_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "set", "gateway.max_round", "5"]) == 0
    assert "did you mean gateway.max_rounds?" in capsys.readouterr().err


def test_set_repairs_a_value_that_is_an_error(home: Path) -> None:
    (home / "config.yaml").write_text("gateway: {max_rounds: x, turn_timeout: y}\n")
    assert main(["config", "set", "gateway.max_rounds", "5"]) == 0
    assert (home / "config.yaml").read_text() == "gateway: {max_rounds: 5, turn_timeout: y}\n"


@requirement("config.check.findings")
@pytest.mark.parametrize(
    ("text", "code", "errors", "warnings"),
    [
        ("gateway: {}\n", 0, [], []),
        ("gatewey: {}\n", 0, [], ["gatewey"]),
        ("gateway: {max_rounds: x}\ntols: {}\n", 1, ["gateway.max_rounds"], ["tols"]),
        (
            "mcp_servers: {a: null, b: [1], c: {command: x}}\n",
            1,
            ["mcp_servers.a", "mcp_servers.b"],
            [],
        ),
        ("a: [\n", 1, ["config.yaml:2:1"], []),
    ],
)
def test_check_prints_all_findings_and_fails_on_an_error_alone(
    home: Path,
    text: str,
    code: int,
    errors: list[str],
    warnings: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (home / "config.yaml").write_text(text)
    assert main(["config", "check", "--json"]) == code
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert [item["path"].removeprefix(f"{home}/") for item in found["errors"]] == errors
    assert [item["path"] for item in found["warnings"]] == warnings
    assert all(item["message"] for kind in found.values() for item in kind)
    assert main(["config", "check"]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert all(path in told.err for path in (*errors, *warnings))
