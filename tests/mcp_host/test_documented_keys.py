"""Each key of a server entry and of `mcp` against `keys.tsv`: its default, and who shows its effect.

A row has the key, its value where nobody sets it (as YAML), how the documentation puts that (`=`: as
it is) and the tests of what the key does, by their path from this folder. `-` is said nowhere.
"""

import ast
import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import pytest
from ruamel.yaml import YAML

from gateway.domain.tools import CallState
from mcp_host.config import parse_mcp, parse_servers
from mcp_host.network_config import IdentitySource
from mcp_host.server_config import McpConfig, ServerConfig, Trust
from tests.mcp_host.hosting import Person, arguments, legacy, lines_of, running
from tests.support.documented import documented, fields
from tests.support.requirement import requirement

HERE: Final = Path(__file__).resolve().parent
SERVER: Final = "mcp_servers.<name>"
SYNONYMS: Final = {f"{SERVER}.type", f"{SERVER}.lifecycle"}
"""Other ways to write keys of the table; nothing of their own has a default."""


def rows() -> list[dict[str, str]]:
    with (HERE / "keys.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def read(text: str) -> Any:
    return cast("Any", YAML(typ="safe")).load(text)


def loaded(**entry: Any) -> ServerConfig:
    return parse_servers({"s": entry}).servers["s"]


def in_force(key: str) -> Any:
    """Return the value of a key that nobody sets, as it would be written."""
    if key.startswith("mcp."):
        found: Any = parse_mcp(None)[0].model_dump(mode="json")
        return found[key.removeprefix("mcp.")]
    found = loaded(url="https://x").model_dump(mode="json")
    for part in key.removeprefix(f"{SERVER}.").split("."):
        found = found[part]
    return found


@cache
def functions_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


@requirement("mcp.keys.defaults", "case.cf8")
def test_the_table_has_each_key_of_this_version_once() -> None:
    keys = [row["key"] for row in rows()]

    assert len(keys) == len(set(keys))
    assert set(keys) - SYNONYMS == {*fields(ServerConfig, SERVER), *fields(McpConfig, "mcp")}


@requirement("mcp.keys.defaults", "case.cf8")
@pytest.mark.parametrize(
    "row", [row for row in rows() if row["default"] != "-"], ids=lambda row: row["key"]
)
def test_what_nobody_sets_has_the_value_of_the_table_and_of_the_documentation(
    row: Mapping[str, str],
) -> None:
    said = dict(documented())[row["key"]]["Default"]

    assert in_force(row["key"]) == read(row["default"])
    assert said.startswith(f"`{row['default']}`" if row["said"] == "=" else row["said"])


@requirement("mcp.keys.defaults", "case.cf8")
@pytest.mark.parametrize("row", rows(), ids=lambda row: row["key"])
def test_what_each_key_does_is_shown_by_tests_that_exist(row: Mapping[str, str]) -> None:
    proofs = row["proofs"].split()

    assert proofs
    for proof in proofs:
        path, _, name = proof.partition("::")
        assert name.startswith("test_")
        assert name in functions_in((HERE / path).resolve()), proof


@requirement("mcp.keys.defaults")
def test_a_server_may_have_as_many_connections_as_its_way_allows() -> None:
    assert loaded(command="x").connection_limit == 1
    assert loaded(url="https://x").connection_limit == 4
    assert loaded(url="https://x/sse", transport="sse").connection_limit == 4
    assert loaded(command="x", max_connections=3).connection_limit == 3
    assert loaded(url="https://x", max_connections=1).connection_limit == 1


@requirement("mcp.keys.defaults")
def test_an_identity_is_the_text_of_its_value_unless_it_says_otherwise() -> None:
    identity = loaded(url="https://x", identity_header={"name": "X", "value": "me"}).identity_header

    assert identity is not None
    assert (identity.value_from, identity.value) == (IdentitySource.STATIC, "me")


@requirement("mcp.keys.defaults")
@pytest.mark.anyio
@pytest.mark.parametrize("trust", ["Untrustd", "FULL", "", None, True, 1, ["full"]])
async def test_a_trust_that_nobody_knows_lets_no_write_by_unasked(
    trust: object, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    given = legacy("--runs", runs)
    found = parse_servers({"s": {"command": given.command, "args": given.args, "trust": trust}})
    denied = Person(arguments("x"), approval=ValueError("nobody is there"))
    async with running(dict(found.servers)) as host:
        result = await host.call("write", "x", person=denied)

    assert found.servers["s"].trust is Trust.UNTRUSTED
    assert len(denied.approves) == 1
    assert result.state is CallState.REFUSED
    assert lines_of(runs) == []
