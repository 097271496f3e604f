"""How statements get their values."""

import pytest

from store.work import positional


@pytest.mark.parametrize(
    ("sql", "text", "taken"),
    [
        ("SELECT 1", "SELECT 1", ()),
        ("SELECT :a", "SELECT ?", (1,)),
        ("UPDATE t SET x = :b_c, y = :a WHERE z = :b_c", "UPDATE t SET x = ?, y = ? WHERE z = ?",
         (2, 1, 2)),
    ],
)  # fmt: skip
def test_values_by_name_are_taken_by_their_places(
    sql: str, text: str, taken: tuple[int, ...]
) -> None:
    by_place, take = positional(sql)

    assert by_place == text
    assert take({"a": 1, "b_c": 2, "unused": 3}) == taken


def test_a_value_that_is_missing_is_noticed() -> None:
    _, take = positional("SELECT :a, :b")

    with pytest.raises(KeyError):
        take({"a": 1})
