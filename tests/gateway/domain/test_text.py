import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.text import fenced, shorten, show_escapes, strip_terminal

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)
invisible = st.text(
    st.characters(codec=None, categories=("Cc", "Cf", "Cs", "Zl", "Zp")), min_size=1, max_size=10
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, naïve 😀\n\tindented", "plain text, naïve 😀\n\tindented"),
        ("\x1b[31mred", "\\u001b[31mred"),
        ("a\x00b\x7fc\x9bd", "a\\u0000b\\u007fc\\u009bd"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("soft\u00adhyphen", "soft\\u00adhyphen"),
        ("tag\U000e0041", "tag\\udb40\\udc41"),
        ("\ud83d alone", "\\ud83d alone"),
        ("line\r\nend", "line\\u000d\nend"),
    ],
)
def test_what_is_invisible_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert show_escapes(text) == shown


@given(invisible)
def test_nothing_invisible_is_left_to_see(text: str) -> None:
    shown = show_escapes(text)

    # Letters that are drawn, though Unicode files them under format characters, may stay.
    left = [
        char
        for char in shown
        if char not in "\t\n" and unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")
    ]
    assert left == []


@given(any_text)
def test_shown_json_reads_back_to_the_value_that_runs(text: str) -> None:
    shown = show_escapes(json.dumps({"a": text}, ensure_ascii=False))

    assert json.loads(shown) == {"a": text}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\r\nb\n\tc", "a\nb\n\tc"),
        ("\x1b]0;title\x07text", "]0;titletext"),
        ("\x9b31mred", "31mred"),
        ("over\rwrite", "overwrite"),
        ("\u202eturned\u2066", "turned"),
        ("lost\udc80byte", "lostbyte"),
        ("joined \u200d emoji ✌\ufe0f", "joined \u200d emoji ✌\ufe0f"),
    ],
)
def test_a_terminal_is_not_steered_and_loses_no_visible_character(text: str, kept: str) -> None:
    assert strip_terminal(text) == kept


@given(any_text)
def test_text_for_a_terminal_can_always_be_written_to_it(text: str) -> None:
    kept = strip_terminal(text)

    assert kept.encode("utf-8").decode("utf-8") == kept
    assert all(char in "\t\n" or unicodedata.category(char) != "Cc" for char in kept)


@given(any_text, st.integers(min_value=1, max_value=40))
def test_a_shortened_text_fits_and_says_that_it_was_cut(text: str, limit: int) -> None:
    short = shorten(text, limit)

    assert len(short) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@pytest.mark.parametrize("text", ["plain", "```\ninside\n```", "`````", ""])
def test_nothing_in_a_block_of_code_ends_it(text: str) -> None:
    first, *inside, last = fenced(text, language="json").split("\n")

    assert "\n".join(inside) == text
    assert first == f"{last}json"
    assert last not in text
