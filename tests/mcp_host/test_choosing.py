import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_host.choosing import choose
from mcp_host.filters import ToolFilter
from tests.support.requirement import requirement

NAMES = ["read_a", "read_b", "write_a", "write_b", "tag"]
GLOB = ToolFilter(exclude=("write_*", "danger_*"))


@requirement("case.tn8")
@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        # Nothing changes.
        (GLOB, {"read_a", "read_b", "tag"}, GLOB),
        # One more is left out: both globs stay.
        (GLOB, {"read_a", "read_b"}, ToolFilter(exclude=("write_*", "danger_*", "tag"))),
        # One that a glob kept out comes in: that glob alone becomes names.
        (
            GLOB,
            {"read_a", "read_b", "tag", "write_a"},
            ToolFilter(exclude=("write_b", "danger_*")),
        ),
        # All come in: no name is listed, and what keeps out others stays.
        (GLOB, set(NAMES), ToolFilter(exclude=("danger_*",))),
        (ToolFilter(include=("read_*", "old_*")), {"read_a", "read_b"}, None),
        (
            ToolFilter(include=("read_*", "old_*")),
            {"read_a", "read_b", "tag"},
            ToolFilter(include=("read_*", "old_*", "tag")),
        ),
        (
            ToolFilter(include=("read_*", "old_*")),
            {"read_a"},
            ToolFilter(include=("read_a", "old_*")),
        ),
        (ToolFilter(include=("read_*",)), set(NAMES), ToolFilter()),
        (ToolFilter(include=()), {"tag"}, ToolFilter(include=("tag",))),
        (ToolFilter(), {"read_a", "read_b", "write_a", "write_b"}, ToolFilter(exclude=("tag",))),
        (ToolFilter(), set(NAMES), ToolFilter()),
        (ToolFilter(), set[str](), ToolFilter(exclude=tuple(NAMES))),
    ],
)
def test_a_choice_touches_no_more_of_the_filter_than_it_must(
    before: ToolFilter, wanted: set[str], after: ToolFilter | None
) -> None:
    assert choose(before, NAMES, wanted) == (before if after is None else after)


names = st.text(alphabet="ab*?[]!-", min_size=1, max_size=4)
patterns = st.lists(names, max_size=4).map(tuple)


@requirement("case.tn8")
@given(
    offered=st.lists(names, unique=True, max_size=8),
    include=st.none() | patterns,
    exclude=patterns,
    data=st.data(),
)
def test_exactly_what_was_chosen_passes(
    offered: list[str],
    include: tuple[str, ...] | None,
    exclude: tuple[str, ...],
    data: st.DataObject,
) -> None:
    wanted = data.draw(st.sets(st.sampled_from(offered))) if offered else set[str]()

    after = choose(ToolFilter(include=include, exclude=exclude), offered, wanted)

    assert {name for name in offered if after.admits(name)} == wanted
