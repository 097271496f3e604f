"""The servers that hold while the files change, and what the log says of each load."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from gateway.app.live import LiveServers
from gateway.config.home import Home
from gateway.config.load import load
from gateway.telemetry.redact import Redactor
from tests.support.requirement import requirement

GOOD = {"command": "good"}


def write(home: Home, **servers: Any) -> None:
    home.config_file.write_text(json.dumps({"mcp_servers": servers}))


def live(home: Home) -> LiveServers:
    loaded = load(home, environ={})
    return LiveServers(home, loaded, {}, Redactor(loaded.secrets))


@requirement("case.sc3")
def test_each_load_says_how_many_servers_are_fine_and_why_the_others_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    home = Home(tmp_path)
    write(home, a=GOOD, b=GOOD)
    servers = live(home)
    write(home, a=GOOD, b=GOOD, bad={"args": []}, worse=[1])
    servers.load()
    servers.load()

    told = [record.message for record in caplog.records if record.levelno == logging.INFO]
    skipped = (
        "mcp_servers: 2 ok, 2 skipped (bad: mcp_servers.bad: has no command and no url; the server "
        "is skipped; worse: mcp_servers.worse: is not a mapping of settings; the server is skipped)"
    )
    assert told == ["mcp_servers: 2 ok, 0 skipped", skipped, skipped]


@requirement("case.sc3")
def test_looking_whether_a_file_was_edited_says_nothing_by_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    home = Home(tmp_path)
    write(home, a=GOOD)
    servers = live(home)

    assert not servers.edited()
    assert [record.message for record in caplog.records] == ["mcp_servers: 1 ok, 0 skipped"]
    write(home, a=GOOD, bad={"args": []})
    assert servers.edited()
    assert len(caplog.records) == 1
    servers.load()
    assert len(caplog.records) == 3


@requirement("config.server_entry.keeps_last_good")
def test_an_entry_that_becomes_invalid_keeps_its_last_good_form(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write(home, a={"command": "good", "timeout": 7}, b=GOOD)
    servers = live(home)
    write(home, a={"command": "good", "timeout": -1}, b={"command": "better"})
    held = servers.load()

    assert (held["a"].timeout, held["b"].command) == (7, "better")
    assert [finding.path for finding in servers.problems] == ["mcp_servers.a.timeout"]

    # An entry that is not there any more is not kept.
    write(home, b=GOOD)
    assert set(servers.load()) == {"b"}


@requirement("fault.f37")
@pytest.mark.parametrize(
    "text", ["mcp_servers: {a: {comm", "", "mcp_servers: [1]\n", "a: \0\n", None]
)
def test_a_broken_file_lifts_no_rule_and_each_finding_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str | None
) -> None:
    home = Home(tmp_path)
    write(home, a={"command": "good", "trust": "untrusted", "tools": {"policy": {"w*": "deny"}}})
    servers = live(home)
    before = dict(servers.servers)
    if text is None:
        home.config_file.unlink()
    else:
        home.config_file.write_text(text)
    held = [servers.load() for _ in range(3)]

    assert [dict(each) for each in held] == [before] * 3
    assert before["a"].tools.policy
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == len(servers.problems) > 0
