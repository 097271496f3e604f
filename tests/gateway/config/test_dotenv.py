from pathlib import Path

import pytest

from gateway.config.dotenv import parse_env, read_env_file, write_env_file
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


def test_writing_sets_its_variables_and_leaves_every_other_line(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# mine\nA=1\nexport B='two'  # why\nA=3\n#B=commented\nC=x")
    path.chmod(0o644)

    write_env_file(path, {"A": "new", "B": 'q"\\ #', "D": ""})

    assert path.read_text() == ('# mine\nA=1\nB="q\\"\\\\ #"\nA=new\n#B=commented\nC=x\nD=\n')
    assert read_env_file(path).variables == {"A": "new", "B": 'q"\\ #', "C": "x", "D": ""}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_new_file_is_its_owners_alone_and_what_cannot_be_a_line_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / ".env"
    for name, value in (("A B", "x"), ("A", "x\nB=y"), ("A", "\0")):
        with pytest.raises(ConfigError):
            write_env_file(path, {name: value})
    assert not path.exists()
    write_env_file(path, {"TOKEN": "123:AAx-_"})
    assert path.read_text() == "TOKEN=123:AAx-_\n"
    assert path.stat().st_mode & 0o777 == 0o600
