"""The profile's `.env`: `KEY=VALUE` lines, `export`, comments and quotes. Expands nothing.

Writing changes the lines of the given variables alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.config.files import replace_file
from gateway.domain.errors import ConfigError, HomeError
from gateway.domain.findings import Finding, warning

MAX_BYTES: Final = 1024 * 1024

_LINE: Final = re.compile(
    r"(?:export\s+)?(?P<name>[A-Za-z_][\w.-]*)\s*=\s*(?P<value>.*)", re.DOTALL
)
_SINGLE: Final = re.compile(r"'(?P<text>[^']*)'\s*(?:#.*)?")
_DOUBLE: Final = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_PLAIN: Final = re.compile(r"[\w./:@%+,=~-]*", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFile:
    """The variables of a `.env`, and what is wrong with its lines."""

    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    findings: tuple[Finding, ...] = ()


def read_env_file(path: Path) -> EnvFile:
    """Read a `.env`; one that is not there is empty.

    Raises:
        ConfigError: It is there and cannot be read.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return EnvFile()
    except OSError as cause:
        raise ConfigError(str(path), f"cannot be read ({cause.strerror})") from cause
    if len(raw) > MAX_BYTES:
        raise ConfigError(str(path), f"is larger than {MAX_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        line = raw.count(b"\n", 0, cause.start) + 1
        raise ConfigError(f"{path}:{line}", "is not UTF-8") from cause
    return parse_env(text, name=path.name)


def parse_env(text: str, *, name: str = ".env") -> EnvFile:
    """Take the text apart; a line that says nothing is reported by its number, never shown."""
    variables: dict[str, str] = {}
    findings: list[Finding] = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        value = _value(found["value"]) if found else None
        if found is None or value is None:
            message = "is not KEY=VALUE, ignored" if found is None else "has an open quote, ignored"
            findings.append(warning(f"{name}:{number}", f"the line {message}"))
            continue
        variables[found["name"]] = value
    return EnvFile(variables=variables, findings=tuple(findings))


def write_env_file(path: Path, variables: Mapping[str, str]) -> None:
    """Set variables of a `.env`, made with 0600 when there is none; its other lines stay.

    Raises:
        ConfigError: The file cannot be read, or a value holds a line feed or a NUL.
        HomeError: It cannot be written.
    """
    read_env_file(path)
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        replace_file(path, with_variables(text, variables))
    except OSError as cause:
        problem = f".env cannot be written ({cause.strerror})"
        raise HomeError(str(path.parent), problem) from cause


def with_variables(text: str, variables: Mapping[str, str]) -> str:
    """Return the text of a `.env` with variables set, each where its line is, else at the end.

    Raises:
        ConfigError: A name is none, or a value holds a line feed or a NUL.
    """
    lines = text.split("\n")
    for name, value in variables.items():
        if not _NAME.fullmatch(name):
            raise ConfigError(".env", f"{name} is no name of a variable")
        if any(mark in value for mark in "\n\r\0"):
            raise ConfigError(".env", f"the value of {name} holds a line feed or a NUL")
        line = f"{name}={_written(value)}"
        # The last of several lines is the one that holds.
        at = [n for n, each in enumerate(lines) if _name_in(each) == name]
        if at:
            lines[at[-1]] = line
        else:
            lines[-1:] = [lines[-1], line] if lines[-1].strip() else [line]
            lines.append("")
    return "\n".join(lines)


def _name_in(line: str) -> str | None:
    found = _LINE.fullmatch(line.strip())
    return found["name"] if found and not line.strip().startswith("#") else None


def _written(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _value(text: str) -> str | None:
    """Return the value a line gives, None when its quotes do not close."""
    if text.startswith("'"):
        found = _SINGLE.fullmatch(text)
        return found["text"] if found else None
    if text.startswith('"'):
        found = _DOUBLE.fullmatch(text)
        return _ESCAPE.sub(_unescape, found["text"]) if found else None
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip() if not text.startswith("#") else ""


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[1], match[1])
