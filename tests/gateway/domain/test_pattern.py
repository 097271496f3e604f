import pytest

from gateway.domain.pattern import MAX_PATTERN, bounded_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^$",
        "^[A-Z]{2}[0-9]{4}$",
        "^[a-z0-9]+(?:-[a-z0-9]+)*$",
        r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$",
        r"^\+?[0-9 ]{7,15}$",
        "(foo|bar)*",
        "^(?:[A-Z]{2}|[0-9]{3})$",
        r"([a-z]+\.)+com",
        r"\bword\b",
        "^.*$",
    ],
)
def test_a_plain_pattern_may_be_tried(pattern: str) -> None:
    assert bounded_pattern(pattern, length=2_000)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "^(a+)+$",
        "(a|a)*$",
        "^(a|b|ab)*$",
        "(x+x+)+y",
        "(.*)*",
        "^(-a*a*)*$",
        "(a?){30}a{30}",
        "a*a*a*$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
    ],
)
def test_a_pattern_that_may_search_for_ever_is_refused(pattern: str) -> None:
    assert not bounded_pattern(pattern, length=2_000)


@pytest.mark.parametrize(
    "pattern",
    ["[", "(", "a**", "a{}", r"(a)\1", "(?=a)b", "(?i)a", "(?P<n>a)", "(" * 60 + ")" * 60, 7, None],
)
def test_what_is_no_pattern_or_not_covered_is_refused(pattern: object) -> None:
    assert not bounded_pattern(pattern, length=2_000)


def test_a_very_long_pattern_is_refused() -> None:
    assert not bounded_pattern("a" * (MAX_PATTERN + 1), length=10)


def test_a_short_text_allows_a_more_costly_pattern() -> None:
    assert bounded_pattern("^a*a*a*$", length=100)
    assert not bounded_pattern("^a*a*a*a*$", length=2_000)
