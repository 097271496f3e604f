import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_host.filters import ToolFilter
from mcp_host.server_config import ToolsConfig
from tests.support.requirement import requirement

NAMES: list[str] = ["get_zones_eu", "get_zones_us", "delete-zone", "Delete-zone", "zone.read"]


NO_KEYS: dict[str, object] = {}


def admitted(tools: dict[str, object]) -> list[str]:
    admits = ToolFilter.of(ToolsConfig.model_validate(tools))
    return [name for name in NAMES if admits.admits(name)]


@requirement("mcp.filters.patterns")
@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (NO_KEYS, NAMES),
        ({"include": None}, NAMES),
        ({"include": "zone.read"}, ["zone.read"]),
        ({"include": ["get_zones_*"]}, ["get_zones_eu", "get_zones_us"]),
        ({"include": ["*_zones_*", "zone.read"]}, ["get_zones_eu", "get_zones_us", "zone.read"]),
        ({"include": ()}, []),
        ({"include": [""]}, []),
        ({"exclude": "delete-zone"}, [name for name in NAMES if name != "delete-zone"]),
        ({"exclude": ["*elete-*", "get_*"]}, ["zone.read"]),
        ({"exclude": ()}, NAMES),
        ({"include": ["delete-zone"], "exclude": ["delete-zone", "get_*"]}, ["delete-zone"]),
        ({"include": (), "exclude": ["get_*"]}, []),
        ({"include": ["zone_read"]}, []),
    ],
)
def test_include_wins_and_patterns_are_exact_or_globs_on_original_names(
    tools: dict[str, object], expected: list[str]
) -> None:
    assert admitted(tools) == expected


def test_a_name_with_glob_characters_matches_itself() -> None:
    assert ToolFilter(include=("a[b]",)).admits("a[b]")
    assert ToolFilter(include=("a[b]",)).admits("ab")


def test_a_rejection_says_what_keeps_the_tool_out() -> None:
    both = ToolFilter(exclude=("get_*", "x"))

    assert both.rejection("get_a") == "exclude get_*"
    assert both.rejection("put_a") is None
    assert ToolFilter(include=("x",)).rejection("y") == "not in include"


_patterns = st.lists(st.text(st.sampled_from("ab*?[]!_"), max_size=4), max_size=3).map(tuple)


@given(name=st.text(max_size=6), include=_patterns, exclude=_patterns)
def test_exclude_counts_only_without_include(
    name: str, include: tuple[str, ...], exclude: tuple[str, ...]
) -> None:
    assert ToolFilter(include=include, exclude=exclude).admits(name) == (
        ToolFilter(include=include).admits(name)
    )
    assert ToolFilter(exclude=(*exclude, name)).admits(name) is False
    assert ToolFilter(include=(*include, name)).admits(name) is True
