"""What `hermes mcp` says of a filter is what the filter does."""

import json

import pytest

from gateway.cli.main import main
from tests.gateway.cli.conftest import Configured
from tests.support.requirement import requirement

NINE = ["hidden*", "none_1", "none_2", "none_3*", "none_4", "none_5", "none_6", "none_7", "none_8"]
"""Nine patterns that match the five tools whose names begin with `hidden`."""


def connected(capsys: pytest.CaptureFixture[str]) -> tuple[set[str], list[str]]:
    """Return the tools that are registered, and what was said of the others."""
    capsys.readouterr()
    assert main(["mcp", "test", "s", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    return {tool["name"] for tool in report["tools"]}, report["warnings"]


def listed(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["mcp", "list"]) == 0
    return capsys.readouterr().out


@requirement("case.tn6")
def test_an_empty_include_gives_no_tools_and_says_so_everywhere(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(s=configured.server(tools={"include": []}))
    tools, warnings = connected(capsys)

    assert tools == set()
    assert any("is empty: no tool is registered" in line for line in warnings)
    assert "no tools (include is empty)" in listed(capsys)
    assert main(["config", "check"]) == 0
    assert "is empty: no tool is registered" in capsys.readouterr().err


@requirement("case.tn6")
@pytest.mark.parametrize("tools", [{}, {"include": None}, None])
def test_an_absent_include_gives_all_tools(
    configured: Configured, capsys: pytest.CaptureFixture[str], tools: object
) -> None:
    configured.write(s=configured.server(tools=tools))
    found, warnings = connected(capsys)

    assert len(found) > 30
    assert not any("include" in line for line in warnings)
    assert "include" not in listed(capsys)


@requirement("case.tn7")
def test_a_single_name_is_an_include_of_one(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(s=configured.server(tools={"include": "echo"}))
    found, warnings = connected(capsys)

    assert found == {"echo"}
    assert any("not in include" in line for line in warnings)
    assert ", include echo" in listed(capsys)


@requirement("case.tn7")
def test_patterns_are_listed_as_patterns_and_tools_are_counted_as_tools(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write(s=configured.server())
    every, _ = connected(capsys)
    configured.write(s=configured.server(tools={"exclude": NINE}))
    found, warnings = connected(capsys)

    assert len(every - found) == 5
    assert "5 filtered: exclude hidden*" in warnings
    assert f"exclude {' '.join(NINE)}" in listed(capsys)
