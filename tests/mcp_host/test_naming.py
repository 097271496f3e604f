import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_host.naming import MAX_ALIAS, alias_for, older_alias_for, toolset_for
from tests.support.requirement import requirement

LONG = "a_very_long_tool_name_" * 4


@requirement("mcp.names.form")
@pytest.mark.parametrize(
    ("server", "tool", "alias"),
    [
        ("github", "create_issue", "mcp__github__create_issue"),
        ("my-api", "list-items.v2", "mcp__my_api__list_items_v2"),
        ("coding", "start/β (x)", "mcp__coding__start____x_"),
    ],
)
def test_what_is_no_letter_digit_or_underscore_becomes_an_underscore(
    server: str, tool: str, alias: str
) -> None:
    assert alias_for(server, tool) == alias


@requirement("mcp.names.form")
def test_the_older_form_has_single_underscores() -> None:
    assert older_alias_for("my-api", "list-items") == "mcp_my_api_list_items"


def test_a_toolset_carries_the_name_of_its_server() -> None:
    assert toolset_for("my-api") == "mcp-my-api"


@requirement("mcp.names.long")
def test_a_long_name_is_cut_with_the_same_suffix_on_every_start() -> None:
    assert (
        alias_for("server", LONG)
        == "mcp__server__a_very_long_tool_name_a_very_long_tool_nam_ec808e2d"
    )


@requirement("mcp.names.long")
def test_long_names_that_share_their_beginning_stay_apart() -> None:
    assert alias_for("server", f"{LONG}one") != alias_for("server", f"{LONG}two")
    assert alias_for("server", f"{LONG}-") != alias_for("server", f"{LONG}.")


@requirement("case.tn5")
@settings(deadline=None)
@given(server=st.text(max_size=80), tool=st.text(max_size=200))
def test_every_alias_is_a_name_that_model_apis_take(server: str, tool: str) -> None:
    alias = alias_for(server, tool)

    assert re.fullmatch(r"[A-Za-z0-9_]{1,64}", alias)
    assert len(alias) <= MAX_ALIAS
    assert alias == alias_for(server, tool)
