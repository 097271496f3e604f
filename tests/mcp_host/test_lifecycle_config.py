"""The keys about when a server runs and who shares it."""

from typing import Any

import pytest

from mcp_host.config import ParsedServers, parse_servers
from mcp_host.server_config import ServerConfig


def parsed(**entry: Any) -> ParsedServers:
    return parse_servers({"it": {"command": "x", **entry}})


def loaded(**entry: Any) -> ServerConfig:
    return parsed(**entry).servers["it"]


def messages(found: ParsedServers) -> list[str]:
    return [f"{finding.path}: {finding.message}" for finding in found.findings]


def test_a_keepalive_below_its_floor_is_raised_to_it() -> None:
    assert loaded(keepalive_interval=1).keepalive_interval == 5
    assert loaded(keepalive_interval=90).keepalive_interval == 90


def test_limits_may_stand_below_lifecycle() -> None:
    found = parsed(lifecycle={"idle_timeout_seconds": 9, "max_lifetime_seconds": 99})

    assert messages(found) == []
    entry = found.servers["it"]
    assert (entry.idle_timeout_seconds, entry.max_lifetime_seconds) == (9, 99)


def test_a_limit_of_the_entry_itself_wins_over_the_one_below_lifecycle() -> None:
    found = parsed(idle_timeout_seconds=1, lifecycle={"idle_timeout_seconds": 9})

    assert found.servers["it"].idle_timeout_seconds == 1
    assert messages(found) == [
        "mcp_servers.it.lifecycle.idle_timeout_seconds: is ignored: "
        "the entry has its own idle_timeout_seconds"
    ]


@pytest.mark.parametrize(
    ("lifecycle", "says"),
    [
        (5, "mcp_servers.it.lifecycle: is ignored: it must be a mapping"),
        (
            {"lazy": True},
            "mcp_servers.it.lifecycle.lazy: is not a known key "
            "(it may hold idle_timeout_seconds and max_lifetime_seconds)",
        ),
    ],
)
def test_what_cannot_stand_below_lifecycle_is_said_and_the_server_stays(
    lifecycle: object, says: str
) -> None:
    found = parsed(lifecycle=lifecycle)

    assert "it" in found.servers
    assert messages(found) == [says]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("idle_timeout_seconds", -1),
        ("max_lifetime_seconds", "often"),
        ("keepalive_interval", 0),
        ("max_connections", 0),
        ("exclusive", "perhaps"),
    ],
)
def test_a_value_that_makes_no_sense_skips_the_server_with_one_line(
    key: str, value: object
) -> None:
    found = parsed(**{key: value})

    assert found.servers == {}
    assert len(found.findings) == 1
    assert f"mcp_servers.it.{key}" in messages(found)[0]
