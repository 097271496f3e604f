"""Reads YAML into plain values, with line and column for everything that is wrong with it."""

# The YAML library is typed in part.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, cast

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from gateway.config.findings import KeyPath, dotted
from gateway.domain.errors import ConfigError

MAX_BYTES: Final = 1024 * 1024
MAX_VALUES: Final = 100_000
MAX_DEPTH: Final = 40

_DUPLICATE: Final = re.compile(r'duplicate key "(?P<key>[^"]*)"')


def read_document(path: Path) -> Mapping[str, object] | None:
    """Read the file; None when there is none or it holds nothing.

    Raises:
        ConfigError: With file, line and column, or with what keeps it from being read.
    """
    text = read_text(path)
    return None if text is None else parse_document(text, name=str(path))


def read_text(path: Path) -> str | None:
    """Return the file's text, None when there is no file.

    Raises:
        ConfigError: It cannot be read, is too large or is not UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(str(path), "is not a file")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as cause:
        raise ConfigError(str(path), f"cannot be read ({cause.strerror})") from cause
    if len(raw) > MAX_BYTES:
        raise ConfigError(str(path), f"is larger than {MAX_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        where = _position(raw[: cause.start].decode("utf-8", "replace"))
        raise ConfigError(f"{path}:{where}", "is not UTF-8") from cause


def parse_document(text: str, *, name: str) -> Mapping[str, object] | None:
    """Parse YAML whose top is a mapping; None when it holds nothing.

    Raises:
        ConfigError: With `name`, line and column.
    """
    value = parse_value(text, name=name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ConfigError(f"{name}:1:1", "must be a mapping of sections (key: value)")
    return cast("dict[str, object]", value)


def parse_value(text: str, *, name: str) -> object:
    """Parse any YAML into plain values: keys are strings, dates stay text.

    Raises:
        ConfigError: With `name`, line and column.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _PlainConstructor
    try:
        loaded = cast("object", yaml.load(text))
    except DuplicateKeyError as cause:
        found = _DUPLICATE.search(str(cause.problem))
        key = found["key"] if found else "a key"
        raise ConfigError(_marked(name, cause), f"{key} appears twice") from None
    except MarkedYAMLError as cause:
        raise ConfigError(_marked(name, cause), _sentence(cause)) from None
    except ReaderError as cause:
        where = _position(text[: cause.position])
        raise ConfigError(f"{name}:{where}", "has a control character") from None
    except RecursionError:
        raise ConfigError(name, "is nested too deeply") from None
    except (YAMLError, ValueError) as cause:
        raise ConfigError(name, f"is not valid YAML ({type(cause).__name__})") from None
    return _Plain(name).plain(loaded, ())


class _PlainConstructor(SafeConstructor):
    """Keeps `2026-01-01` the text it is."""

    # The library sets it on classes, its types know it on instances.
    yaml_constructors: ClassVar[dict[str, object]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        **SafeConstructor.yaml_constructors,
        "tag:yaml.org,2002:timestamp": SafeConstructor.construct_yaml_str,
    }


class _Plain:
    """Copies parsed values; aliases are bounded by what they unfold to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._values = 0

    def plain(self, value: object, path: KeyPath) -> object:
        self._values += 1
        if self._values > MAX_VALUES or len(path) > MAX_DEPTH:
            raise ConfigError(self._name, "holds too many values or is nested too deeply")
        if isinstance(value, Mapping):
            mapping = cast("Mapping[object, object]", value)
            return {
                _key(key): self.plain(item, (*path, _key(key))) for key, item in mapping.items()
            }
        if isinstance(value, list | tuple):
            items = cast("list[object]", value)
            return [self.plain(item, (*path, at)) for at, item in enumerate(items)]
        if value is None or isinstance(value, str | int | float):
            return value
        raise ConfigError(dotted(path) or self._name, f"a value of type {type(value).__name__}")


def _key(key: object) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    return str(key)


def _marked(name: str, cause: object) -> str:
    mark = getattr(cause, "problem_mark", None) or getattr(cause, "context_mark", None)
    return f"{name}:{mark.line + 1}:{mark.column + 1}" if mark is not None else name


def _sentence(cause: object) -> str:
    problem = getattr(cause, "problem", None) or getattr(cause, "context", None)
    return f"YAML syntax error: {problem or 'cannot be parsed'}"


def _position(before: str) -> str:
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
