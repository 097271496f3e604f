import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.canonical import MAX_DEPTH, NotCanonical, canonical, parse_json, sha256_of

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=10)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=10,
)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@given(values)
def test_a_value_has_one_text_that_reads_back_exactly(value: object) -> None:
    text = canonical(value)

    assert text.isascii()
    assert canonical(parse_json(text)) == text
    assert parse_json(text) == value


@given(st.dictionaries(any_text, st.integers(), max_size=5))
def test_the_order_in_which_keys_came_does_not_show(value: dict[str, int]) -> None:
    turned = dict(reversed(value.items()))

    assert canonical(turned) == canonical(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}'),
        (2**64 + 1, "18446744073709551617"),
        (0.1, "0.1"),
        (1e100, "1e+100"),
        (1.0, "1.0"),
        ("é\x00\ud800", '"\\u00e9\\u0000\\ud800"'),
        ("😀", '"\\ud83d\\ude00"'),
    ],
)
def test_numbers_stay_exact_and_text_is_ascii(value: object, text: str) -> None:
    assert canonical(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), b"bytes"])
def test_what_is_not_json_has_no_canonical_form(value: object) -> None:
    with pytest.raises(NotCanonical):
        canonical(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[Infinity]",
        "-Infinity",
        '{"a":1,"a":2}',
        '{"a":{"b":1,"\\u0062":2}}',
        "'a'",
        "01",
        '"\n"',
        nested(MAX_DEPTH + 1),
        nested(100_000),
    ],
)
def test_json_is_read_strictly(text: str) -> None:
    with pytest.raises(NotCanonical):
        parse_json(text)


def test_json_is_read_down_to_the_deepest_allowed_level() -> None:
    assert json.dumps(parse_json(nested(MAX_DEPTH))) == nested(MAX_DEPTH)


def test_a_value_too_deep_to_write_has_no_canonical_form() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(NotCanonical):
        canonical(value)


def test_the_hash_is_that_of_the_bytes_and_takes_any_text() -> None:
    assert sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_of("\ud800") != sha256_of("\ud801")
