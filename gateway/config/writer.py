"""Writes `config.yaml`: a round trip that keeps comments, order and foreign keys, in one rename.

Writes what it is given and nothing resolved: placeholders stay placeholders.
"""

# The YAML library is typed in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import io
import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from gateway.config.document import parse_document, parse_value, read_text
from gateway.config.files import create_file, replace_file
from gateway.config.home import Home
from gateway.domain.errors import ConfigError, HomeError

REMOVED: Final = object()
"""The value of a key that is to go."""

_WIDTH: Final = 4096
_PLAIN: Final = re.compile(
    r"true|false|null|~|[-+]?\d+|[-+]?\d+\.\d*(?:[eE][-+]?\d+)?", re.IGNORECASE
)
_SEQUENCE: Final = re.compile(
    r"^(?P<outer> *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?P<inner> *)- ", re.MULTILINE
)
_MAPPING: Final = re.compile(
    r"^[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:\s*#[^\n]*\n)*(?P<inner> +)[^\s#-]", re.MULTILINE
)


def write_first(home: Home, text: str) -> bool:
    """Make the first `config.yaml` of a home with this text, comments and all.

    Returns False, and changes nothing, when there is one.

    Raises:
        ConfigError: The text is no configuration.
        HomeError: The file cannot be written.
    """
    parse_document(text, name=str(home.config_file))
    try:
        return create_file(home.config_file, text)
    except OSError as cause:
        raise _unwritable(home, cause) from cause


def set_value(home: Home, key: str, value: object) -> None:
    """Set one dotted key; the sections on the way are made, everything else stays as it is.

    Raises:
        ConfigError: The file cannot be parsed, or the key leads through something that is no
            mapping.
        HomeError: The file cannot be written.
    """
    save(home, changed(home, key, value))


def changed(home: Home, key: str, value: object) -> str:
    """Return the text of `config.yaml` with one dotted key set, without writing it.

    Raises:
        ConfigError: As for `set_value`.
    """
    return edited(home, {tuple(_parts(key)): value})


def edited(home: Home, changes: Mapping[tuple[str, ...], object]) -> str:
    """Return the text of `config.yaml` with keys set, or taken out (`REMOVED`), without writing it.

    A key is given part by part; a part may hold dots itself.

    Raises:
        ConfigError: As for `set_value`.
    """
    text = read_text(home.config_file) or ""
    if parse_document(text, name=str(home.config_file)) is None:
        head = text if not text or text.endswith("\n") else f"{text}\n"
        root = CommentedMap()
        _apply(root, changes)
        return head.replace("---\n", "") + _dumped(_yaml(""), root)
    yaml = _yaml(text)
    root = cast("CommentedMap", yaml.load(text))
    _apply(root, changes)
    return _dumped(yaml, root)


def save(home: Home, text: str) -> None:
    """Put the text in the place of `config.yaml`, whole or not at all.

    Raises:
        HomeError: The file cannot be written.
    """
    try:
        replace_file(home.config_file, text)
    except OSError as cause:
        raise _unwritable(home, cause) from cause


def parse_argument(text: str) -> object:
    """Read a value as a shell gives it: true, 5, 1.5, null, [a, b] and {a: b}; the rest is text.

    Raises:
        ConfigError: A list or mapping that does not close.
    """
    if _PLAIN.fullmatch(text) or text.startswith(("[", "{")):
        return parse_value(text, name="the value")
    return text


def dump(values: Mapping[str, object]) -> str:
    """Write plain values as YAML."""
    return _dumped(_yaml(""), values)


def _yaml(text: str) -> YAML:
    """Return a round-trip YAML that writes lists and mappings the way the text does."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    sequence = _SEQUENCE.search(text)
    mapping = _MAPPING.search(text)
    offset = len(sequence["inner"]) - len(sequence["outer"]) if sequence else 2
    width = len(mapping["inner"]) if mapping else 2
    yaml.indent(mapping=width, sequence=offset + 2, offset=offset)
    return yaml


def _dumped(yaml: YAML, root: object) -> str:
    out = io.StringIO()
    yaml.dump(root, out)
    return out.getvalue()


def _parts(key: str) -> list[str]:
    parts = key.split(".")
    if not all(parts):
        raise ConfigError(key or "the key", "is not a key: write section.key")
    return parts


def _apply(root: CommentedMap, changes: Mapping[tuple[str, ...], object]) -> None:
    for parts, value in changes.items():
        if value is REMOVED:
            _take_out(root, parts)
        else:
            _put(root, list(parts), value, ".".join(parts))


def _take_out(root: CommentedMap, parts: Sequence[str]) -> None:
    at: object = root
    for name in parts[:-1]:
        at = at.get(_same_key(at, name)) if isinstance(at, CommentedMap) else None
    if isinstance(at, CommentedMap):
        at.pop(_same_key(at, parts[-1]), None)


def _put(root: CommentedMap, parts: list[str], value: object, key: str) -> None:
    at: CommentedMap = root
    while True:
        done, count = _existing(at, parts) or (parts[0], 1)
        parts = parts[count:]
        if not parts:
            at[_same_key(at, done)] = _quoted(value)
            return
        below = at.get(_same_key(at, done))
        if below is None:
            below = CommentedMap()
            at[_same_key(at, done)] = below
        if not isinstance(below, CommentedMap):
            raise ConfigError(key, f"{done} is not a mapping: set {done} as a whole")
        at = below


def _existing(at: CommentedMap, parts: list[str]) -> tuple[str, int] | None:
    """Return the longest present key that begins the rest, and how many parts it takes up.

    Names may hold dots themselves.
    """
    names = {str(name) for name in cast("Mapping[object, object]", at)}
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        if name in names:
            return name, count
    return None


def _same_key(at: CommentedMap, name: str) -> object:
    """Return the key as the file has it: `-1001` may be a number there."""
    for key in cast("Mapping[object, object]", at):
        if str(key) == name:
            return key
    return name


def _quoted(value: object) -> object:
    """Quote text that another reader of YAML would take for a truth value."""
    if isinstance(value, str) and value.lower() in {"yes", "no", "on", "off", "y", "n"}:
        return DoubleQuotedScalarString(value)
    return value


def _unwritable(home: Home, cause: OSError) -> HomeError:
    return HomeError(str(home.path), f"config.yaml cannot be written ({cause.strerror})")
