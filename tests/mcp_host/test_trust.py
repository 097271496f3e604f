import pytest

from gateway.domain.tools import ToolSpec
from mcp_host.catalog import Catalog, ListedTool
from mcp_host.config import parse_servers
from mcp_host.registry import register
from mcp_host.server_config import ServerConfig
from mcp_host.trust import Gate, gate, says_read_only
from tests.support.requirement import requirement


def server(**entry: object) -> ServerConfig:
    return parse_servers({"notes": {"command": "x", **entry}}).servers["notes"]


def tool(name: str = "tool", annotations: dict[str, object] | None = None) -> ToolSpec:
    listed = ListedTool(
        name=name, title="", description="", input_schema={}, annotations=annotations or {}
    )
    return register("notes", server(), Catalog(tools=(listed,))).specs[0]


READ_ONLY: dict[str, object] = {"readOnlyHint": True}


@requirement("case.ap4")
@pytest.mark.parametrize("trust", ["untrusted", "Untrustd", "Full", "", None, True, 5])
@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {"readOnlyHint": "true"},
        {"readOnlyHint": 1},
        {"readOnlyHint": None},
        {"readOnlyHint": False},
        {"readonlyhint": True},
        {"destructiveHint": False},
    ],
)
def test_on_a_server_that_is_not_fully_trusted_all_but_a_real_true_asks(
    trust: object, annotations: dict[str, object]
) -> None:
    assert gate(server(trust=trust), tool(annotations=annotations)) is Gate.ASK


@requirement("approval.gate")
def test_a_read_only_tool_of_an_untrusted_server_runs_unasked() -> None:
    assert gate(server(trust="untrusted"), tool(annotations=READ_ONLY)) is Gate.ALLOW


def test_a_trusted_server_runs_unasked() -> None:
    assert gate(server(), tool()) is Gate.ALLOW


@requirement("approval.policy")
@pytest.mark.parametrize("trust", ["full", "untrusted"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("delete_note", Gate.DENY),
        ("delete_draft", Gate.ALLOW),
        ("add-note", Gate.ASK),
        ("list_notes", Gate.ALLOW),
    ],
)
def test_the_first_policy_that_matches_holds_on_any_server(
    trust: str, name: str, expected: Gate
) -> None:
    policy = {"delete_draft": "allow", "delete_*": "deny", "add-*": "ask", "*_notes": "allow"}

    assert gate(server(trust=trust, tools={"policy": policy}), tool(name)) is expected


@requirement("approval.policy")
def test_a_policy_can_ask_for_what_only_reads() -> None:
    config = server(tools={"policy": {"*": "ask"}})

    assert gate(config, tool(annotations=READ_ONLY)) is Gate.ASK


@requirement("approval.policy")
def test_a_policy_is_about_original_names() -> None:
    config = server(trust="untrusted", tools={"policy": {"add_note": "allow"}})

    assert gate(config, tool("add-note")) is Gate.ASK


def test_only_a_real_true_says_read_only() -> None:
    assert says_read_only({"readOnlyHint": True})
    assert not says_read_only({"readOnlyHint": "true"})
    assert not says_read_only({})
