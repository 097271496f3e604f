from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_host.catalog import Catalog, ListedTool
from mcp_host.naming import alias_for
from mcp_host.registry import MAX_DEFINITION, MAX_NAME, Registered, Registry, register, server_sha
from mcp_host.sanitize import MAX_DESCRIPTION, show_name
from mcp_host.server_config import ServerConfig, ToolsConfig
from tests.support.requirement import requirement

CONFIG = ServerConfig(command="x")
HIDDEN = "\U000e0041\U000e0042"


def tool(name: str, **more: Any) -> ListedTool:
    fields: dict[str, Any] = {"title": "", "description": "", "input_schema": {"type": "object"}}
    return ListedTool(name=name, **{**fields, **more})


def offering(*tools: ListedTool) -> Catalog:
    return Catalog(tools=tools)


def offer(server: str, *names: str, config: ServerConfig = CONFIG) -> Registered:
    return register(server, config, offering(*map(tool, names)))


def test_a_tool_is_registered_with_its_names_hints_and_cleaned_texts() -> None:
    listed = tool(
        "read-file",
        title=f"Read\n a{HIDDEN} file",
        description="d" * 5_000,
        input_schema={"type": "object", "properties": {"p": {"description": f"path{HIDDEN}"}}},
        annotations={"readOnlyHint": True, "idempotentHint": True},
    )

    spec = register("my-fs", CONFIG, offering(listed)).specs[0]

    assert (spec.server, spec.name, spec.alias) == ("my-fs", "read-file", "mcp__my_fs__read_file")
    assert spec.title == "Read a file"
    assert len(spec.description) == MAX_DESCRIPTION
    assert spec.input_schema == {"type": "object", "properties": {"p": {"description": "path"}}}
    assert (spec.read_only, spec.idempotent, spec.destructive) == (True, True, False)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, (False, False, True)),
        ({"readOnlyHint": "true", "idempotentHint": "true"}, (False, False, True)),
        ({"destructiveHint": False}, (False, False, False)),
        ({"destructiveHint": None}, (False, False, True)),
    ],
)
def test_a_missing_or_garbled_hint_means_the_worst(
    annotations: dict[str, object], expected: tuple[bool, bool, bool]
) -> None:
    spec = register("s", CONFIG, offering(tool("t", annotations=annotations))).specs[0]

    assert (spec.read_only, spec.idempotent, spec.destructive) == expected


def test_filters_decide_on_original_names_and_are_counted() -> None:
    config = ServerConfig(command="x", tools=ToolsConfig(exclude=("get-*", "old")))
    offered = offer("s", "get-a", "get-b", "old", "put-a", config=config)

    found = Registry([offered])

    assert [spec.name for spec in found.tools()] == ["put-a"]
    assert found.notes("s") == ("2 filtered: exclude get-*", "1 filtered: exclude old")


@requirement("threat.s10")
@pytest.mark.parametrize(
    "change",
    [
        {"description": "and sends it to me"},
        {"description": f"does it{HIDDEN}"},
        {"input_schema": {"type": "object", "properties": {"x": {}}}},
        {"output_schema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
    ],
)
def test_a_changed_definition_has_another_hash(change: dict[str, object]) -> None:
    first, second = (
        register(
            "s", CONFIG, offering(tool("t", **{"description": "does it", **more}), tool("other"))
        )
        for more in ({}, change)
    )

    assert first.specs[0].definition_sha != second.specs[0].definition_sha
    assert first.specs[1].definition_sha == second.specs[1].definition_sha


def test_the_order_of_keys_makes_no_other_definition() -> None:
    one = tool("t", input_schema={"a": 1, "b": {"c": 2, "d": 3}})
    other = tool("t", input_schema={"b": {"d": 3, "c": 2}, "a": 1})

    assert (
        len({register("s", CONFIG, offering(it)).specs[0].definition_sha for it in (one, other)})
        == 1
    )


@pytest.mark.parametrize(
    "change",
    [{"command": "y"}, {"args": ("a",)}, {"cwd": "/x"}, {"env": {"TOKEN": "1"}}],
)
def test_what_is_started_makes_the_identity_of_a_server(change: dict[str, Any]) -> None:
    assert server_sha(ServerConfig.model_validate({"command": "x", **change})) != server_sha(CONFIG)


def test_a_rotated_secret_or_a_setting_of_ours_is_the_same_server() -> None:
    one = ServerConfig(command="x", env={"TOKEN": "1"})
    other = ServerConfig(command="x", env={"TOKEN": "2"}, timeout=5)

    assert server_sha(one) == server_sha(other)


@requirement("case.tn1")
def test_tools_of_one_server_that_would_share_an_alias_are_all_left_out() -> None:
    found = Registry([offer("fs", "read-file", "read_file", "read.file", "write")])

    assert [spec.name for spec in found.tools()] == ["write"]
    assert found.find("mcp__fs__read_file") is None
    assert found.collisions == found.notes("fs")
    assert found.notes("fs") == (
        'mcp__fs__read_file would be fs/"read-file" and fs/"read_file" and fs/"read.file": '
        "none of them is registered",
    )


@requirement("case.tn1")
def test_a_tool_that_has_its_name_already_keeps_it_from_those_that_come_later() -> None:
    first = Registry([offer("fs", "read-file")])
    later = Registry([offer("fs", "read_file", "read.file", "read-file")], before=first)
    again = Registry([offer("fs", "read_file", "read.file", "read-file")], before=later)

    for found in (later, again):
        assert [spec.name for spec in found.tools()] == ["read-file"]
        (warning,) = found.collisions
        assert all(name in warning for name in ("read-file", "read_file", "read.file"))


def test_servers_whose_names_become_one_lose_only_what_they_share() -> None:
    found = Registry([offer("foo-bar", "run", "one"), offer("foo_bar", "run", "two")])

    assert [spec.alias for spec in found.tools()] == ["mcp__foo_bar__one", "mcp__foo_bar__two"]
    assert len(found.collisions) == 1
    assert found.notes("foo-bar") == found.notes("foo_bar") == found.collisions


def test_a_tool_listed_twice_with_one_definition_is_one_tool() -> None:
    found = Registry([register("s", CONFIG, offering(tool("t"), tool("t")))])

    assert [spec.name for spec in found.tools()] == ["t"]


def test_a_tool_listed_twice_with_two_definitions_is_left_out() -> None:
    found = Registry([register("s", CONFIG, offering(tool("t"), tool("t", description="else")))])

    assert found.tools() == ()


@requirement("mcp.names.form")
@pytest.mark.parametrize("name", ["mcp__my_api__list_items", "mcp_my_api_list_items", "list-items"])
def test_a_tool_is_found_by_alias_by_the_older_form_and_by_its_own_name(name: str) -> None:
    found = Registry([offer("my-api", "list-items"), offer("other", "put")])

    spec = found.find(name)

    assert spec is not None
    assert spec.alias == "mcp__my_api__list_items"


@requirement("mcp.names.form")
def test_an_ambiguous_name_finds_nothing() -> None:
    found = Registry([offer("a", "b_c", "same"), offer("a_b", "c", "same")])

    assert found.find("same") is None
    # mcp_a_b_c is a's b_c and a_b's c.
    assert found.find("mcp_a_b_c") is None
    assert found.find("mcp__a__b_c") is not None
    assert found.find("nothing") is None


def test_the_own_name_of_a_tool_left_out_finds_no_other_tool() -> None:
    found = Registry([offer("a", "x-y", "x_y"), offer("b", "x_y")])

    assert [spec.alias for spec in found.tools()] == ["mcp__b__x_y"]
    assert found.find("x_y") is None


def test_the_tools_of_a_server_keep_its_order() -> None:
    found = Registry([offer("s", "z", "a"), offer("t", "m")])

    assert [spec.name for spec in found.of_server("s")] == ["z", "a"]
    assert found.of_server("unknown") == ()
    assert [spec.alias for spec in found.tools()] == ["mcp__s__a", "mcp__s__z", "mcp__t__m"]


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        (tool("n" * (MAX_NAME + 1)), "its name has more than 256 characters"),
        (tool(f"na{HIDDEN}me"), "its name has hidden characters"),
        (tool("na\nme\x1b[2J"), "its name has hidden characters"),
        (tool("t", input_schema={"default": float("nan")}), "its definition is no proper JSON"),
        (tool("t", description="x" * MAX_DEFINITION), "its definition has "),
    ],
)
def test_a_tool_that_cannot_be_offered_is_named_with_its_reason(
    listed: ListedTool, why: str
) -> None:
    found = Registry([register("s", CONFIG, offering(listed, tool("fine")))])

    assert [spec.name for spec in found.tools()] == ["fine"]
    (note,) = found.notes("s")
    assert why in note
    assert show_name(note, limit=1_000) == note


def test_tools_are_searched_until_the_registry_is_closed() -> None:
    found = Registry([offer("s", "list_notes", "add_note", "weather")])

    hits = found.search("notes", limit=5)
    found.close()

    assert {hit.spec.name for hit in hits} == {"list_notes", "add_note"}
    found.close()


_names = st.text(st.sampled_from("ab-_.β"), min_size=1, max_size=3)


@settings(deadline=None)
@given(offers=st.dictionaries(_names, st.lists(_names, unique=True, max_size=5), max_size=4))
def test_no_alias_ever_leads_to_another_tool_than_its_own(offers: dict[str, list[str]]) -> None:
    found = Registry([offer(server, *names) for server, names in offers.items()])

    owners: dict[str, set[tuple[str, str]]] = {}
    for server, names in offers.items():
        for name in names:
            owners.setdefault(alias_for(server, name), set()).add((server, name))
    assert {spec.alias: {(spec.server, spec.name)} for spec in found.tools()} == {
        alias: same for alias, same in owners.items() if len(same) == 1
    }
    assert len(found.collisions) == sum(len(same) > 1 for same in owners.values())
