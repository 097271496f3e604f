import json
from pathlib import Path
from typing import Any, cast

from gateway.config.document import parse_document
from gateway.config.home import Home
from gateway.config.load import load
from gateway.config.show import as_yaml, effective
from tests.support.requirement import requirement

TEXT = """\
model: {provider: openai, name: m, api_key: "${KEY}", base_url: "http://${HOST}/v1"}
approvals: {approvers: ["telegram:111"]}
access: {admins: ["telegram:2", "telegram:1"], roles: {guest: ["telegram:3"]}}
mcp_servers:
  s:
    command: x
    args: ["--dsn", "${DSN}", "${workspaceFolder}", "${UNSET:-default}", "canary-env-1"]
    env: {API_TOKEN: canary-literal, MODE: plain, HOST: "${HOST}"}
    tools: {policy: {"delete_*": deny, "add_*": ask}}
"""
ENV = "KEY=canary-key-1\nDSN=canary-dsn-1\nX=canary-env-1\n"


def shown(home: Path) -> dict[str, Any]:
    found = Home(home)
    found.config_file.write_text(TEXT)
    found.env_file.write_text(ENV)
    loaded = load(found, environ={"HOST": "canary-host"}, workspace=Path("/w"))
    return cast("dict[str, Any]", effective(loaded))


@requirement("threat.s19")
def test_nothing_from_the_environment_and_no_secret_is_shown(tmp_path: Path) -> None:
    values = shown(tmp_path)
    assert "canary" not in json.dumps(values)
    assert values["model"]["api_key"] == "••••"
    assert values["model"]["base_url"] == "http://${HOST}/v1"
    assert values["mcp_servers"]["s"]["args"] == ["--dsn", "${DSN}", "/w", "default", "••••"]
    assert values["mcp_servers"]["s"]["env"] == {
        "API_TOKEN": "••••",
        "MODE": "plain",
        "HOST": "${HOST}",
    }


def test_defaults_are_filled_in_and_values_look_like_the_file(tmp_path: Path) -> None:
    values = shown(tmp_path)
    assert values["gateway"]["max_rounds"] == 20
    assert values["approvals"]["approvers"] == ["telegram:111"]
    assert values["access"]["admins"] == ["telegram:1", "telegram:2"]
    assert values["access"]["roles"] == {"guest": ["telegram:3"]}
    assert values["logging"] == {"level": "info", "format": "text"}
    assert values["mcp_servers"]["s"]["tools"]["policy"] == {"delete_*": "deny", "add_*": "ask"}
    assert parse_document(as_yaml(values), name="shown") == values


def test_guided_mode_is_shown_as_no_model(tmp_path: Path) -> None:
    values = effective(load(Home(tmp_path), environ={}))
    assert values["model"] is None
    assert cast("dict[str, object]", values["approvals"])["approvers"] == "requester"
