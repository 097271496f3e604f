from pathlib import Path

import pytest

from gateway.config.document import MAX_BYTES, parse_document, read_document
from gateway.domain.errors import ConfigError
from tests.support.requirement import requirement


@requirement("config.syntax_error.at_start")
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("gateway:\n  max_rounds: [1, 2\n", "config.yaml:3:1"),
        ("gateway:\n\tmax_rounds: 1\n", "config.yaml:2:1"),
        ("a: 1\nb: 2\na: 3\n", "config.yaml:3:1"),
        ("a: b: c\n", "config.yaml:1:5"),
        ("a: 1\nb: *nowhere\n", "config.yaml:2:4"),
        ("a: 1\nb: \x07\n", "config.yaml:2:4"),
        ("- a list\n", "config.yaml:1:1"),
        ("a: 1\n---\nb: 1\n", "config.yaml:2:1"),
    ],
)
def test_what_cannot_be_parsed_is_named_with_line_and_column(text: str, where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, name="config.yaml")
    assert caught.value.path == where
    assert "\n" not in caught.value.public_message


def test_a_doubled_key_is_reported_without_its_values() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document("api_key: canary-1\napi_key: canary-2\n", name="config.yaml")
    assert "canary" not in str(caught.value)
    assert "api_key appears twice" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        "a: &a [*a]",
        "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
        + "".join(
            f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n"
            for old, new in zip("abcdef", "bcdefg", strict=True)
        ),
        "a: !!binary aGk=",
        "a: !!python/object:os.system x",
        "a: !!int x",
    ],
)
def test_hostile_yaml_is_an_error_in_bounded_time(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_document(text, name="config.yaml")


def test_keys_are_text_and_dates_stay_as_written() -> None:
    parsed = parse_document("-1001: a\nday: 2026-01-01\non: yes\n", name="config.yaml")
    assert parsed == {"-1001": "a", "day": "2026-01-01", "on": "yes"}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null\n"])
def test_a_file_that_says_nothing_is_none(text: str) -> None:
    assert parse_document(text, name="config.yaml") is None


@requirement("threat.s21")
def test_files_that_cannot_be_read_are_sentences(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    assert read_document(path) is None
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError, match=r"config\.yaml:2:4: is not UTF-8"):
        read_document(path)
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ConfigError, match="is larger than"):
        read_document(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError, match="is not a file"):
        read_document(path)


@requirement("threat.s21")
def test_aliases_that_unfold_to_too_much_are_refused() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    for text in ("\n".join(levels), "a: " + "[" * 5_000 + "]" * 5_000):
        with pytest.raises(ConfigError, match="nested too deeply"):
            parse_document(text, name="config.yaml")
