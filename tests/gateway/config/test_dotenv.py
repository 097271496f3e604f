from pathlib import Path

import pytest

from gateway.config.dotenv import parse_env, read_env_file
from gateway.domain.errors import ConfigError


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=plain", "plain"),
        ("export A=plain", "plain"),
        ("  A = spaced  ", "spaced"),
        ("A=", ""),
        ("A=with # comment", "with"),
        ("A=url#fragment", "url#fragment"),
        ("A=# only a comment", ""),
        ("A='single # $X \\n'", "single # $X \\n"),
        ('A="double # \\"quoted\\" \\n end" # comment', 'double # "quoted" \n end'),
        ("A=a=b=c", "a=b=c"),
        ("A=${B}", "${B}"),
        ("A=crlf\r", "crlf"),
    ],
)
def test_a_line_gives_a_variable(line: str, value: str) -> None:
    parsed = parse_env(f"# comment\n\n{line}\n")
    assert dict(parsed.variables) == {"A": value}
    assert parsed.findings == ()


def test_the_last_of_two_lines_wins() -> None:
    assert parse_env("A=1\nA=2").variables["A"] == "2"


@pytest.mark.parametrize("line", ["secret-without-name", "=x", "1A=x", "A='open", 'A="open'])
def test_a_line_that_says_nothing_is_reported_by_number_and_never_shown(line: str) -> None:
    parsed = parse_env(f"B=1\n{line}\n")
    assert dict(parsed.variables) == {"B": "1"}
    (finding,) = parsed.findings
    assert finding.path == ".env:2"
    assert line not in str(finding)


def test_a_missing_file_is_empty_and_bad_bytes_are_an_error(tmp_path: Path) -> None:
    assert read_env_file(tmp_path / ".env").variables == {}
    (tmp_path / ".env").write_bytes(b"\xef\xbb\xbfA=1\n")
    assert read_env_file(tmp_path / ".env").variables == {"A": "1"}
    (tmp_path / ".env").write_bytes(b"A=1\nB=\xff\n")
    with pytest.raises(ConfigError, match=r"\.env:2: is not UTF-8"):
        read_env_file(tmp_path / ".env")


def test_values_do_not_show_in_a_representation() -> None:
    assert "canary" not in repr(parse_env("A=canary"))
