import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.files import MAX_NAME_BYTES, file_key, in_words, is_key, safe_name
from gateway.domain.text import show_escapes
from tests.support.requirement import requirement


@requirement("threat.s20")
@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("C:autoexec.bat", "autoexec.bat"),
        ("a\x00b.txt", "ab.txt"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("com1", "_com1"),
        ("gpj\u202efdp.exe", "gpjfdp.exe"),
        ("re\u200bport\u2066.pdf", "report.pdf"),
        ("two\nlines\tof.txt", "twolinesof.txt"),
        ("cafe\u0301.txt", "caf\u00e9.txt"),
        (".bashrc", "bashrc"),
        ("trailing. . ", "trailing"),
        ("..", "file"),
        ("", "file"),
        ("/", "file"),
        ("dir/", "dir"),
        ("x" * 300 + ".pdf", "x" * (MAX_NAME_BYTES - 4) + ".pdf"),
        ("lone \ud800 half.txt", "lone half.txt"),
    ],
)
def test_a_hostile_name_becomes_a_plain_one(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@requirement("threat.s20")
@given(st.text())
def test_any_name_becomes_one_that_is_safe_and_stays_as_it_is(name: str) -> None:
    safe = safe_name(name)

    assert safe == show_escapes(safe) == safe_name(safe)
    assert 0 < len(safe.encode()) <= MAX_NAME_BYTES
    assert not set(safe) & set("/\\:\x00\n")
    assert safe not in {".", ".."}


@requirement("threat.s20")
def test_a_key_has_nothing_of_the_senders_but_a_plain_extension() -> None:
    assert file_key("in", "7-ab", "Report.PDF") == "in-7-ab.pdf"
    assert file_key("in", "7-ab", "x.p/../df") == "in-7-ab"
    assert not is_key("in-7-ab.PDF")
    with pytest.raises(ValueError, match="no key"):
        file_key("in", "../x", "a.txt")


def test_sizes_are_said_in_words() -> None:
    said = [in_words(size) for size in (0, 999, 1_000, 1_500_000, 20_000_000, 2_000_000_000)]

    assert said == ["0 bytes", "999 bytes", "1 kB", "1.5 MB", "20 MB", "2 GB"]
