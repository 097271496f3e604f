"""Which values of a configuration are secrets, told by the names and places they stand at."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

Path: TypeAlias = tuple[str | int, ...]

_SECRET_NAME: Final = re.compile(
    r"(?:token|secret|password|passwd|authorization|cookie|credential|api_?key|[_-]key)s?$",
    re.IGNORECASE,
)
_NOT_SECRET: Final = frozenset({"client_key", "max_tokens", "listing_max_tokens"})
_PLAIN_HEADERS: Final = frozenset(
    {"accept", "accept-language", "content-type", "origin", "user-agent"}
)
_SCHEME: Final = re.compile(r"(?i)^(?:bearer|basic|token|bot)\s+")


def is_secret(path: Path) -> bool:
    """Say whether the key at `path` holds a secret by its name or place."""
    names = [str(part) for part in path]
    if not names or names[-1] in _NOT_SECRET:
        return False
    if names[-2:-1] == ["headers"] and names[-1].lower() not in _PLAIN_HEADERS:
        return True
    return bool(_SECRET_NAME.search(names[-1])) or names[-2:] == ["client_cert", "2"]


def secrets_of(value: object, *, path: Path = ()) -> Iterator[str]:
    """Yield the secrets written in a resolved document, passwords of URLs and arguments too."""
    if isinstance(value, str):
        if is_secret(path):
            yield value
            yield _SCHEME.sub("", value)
        elif "://" in value and (password := _password(value)):
            yield password
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            yield from secrets_of(item, path=(*path, key))
    elif isinstance(value, Sequence):
        items = cast("Sequence[object]", value)
        for at, item in enumerate(items):
            yield from secrets_of(item, path=(*path, at))
        if path[-1:] == ("args",):
            yield from _of_arguments(items)


def _of_arguments(arguments: Sequence[object]) -> Iterator[str]:
    """Yield what follows an option with a secret's name, as `--token X` and `--token=X`."""
    name = ""
    for argument in arguments:
        if not isinstance(argument, str):
            continue
        option, mark, value = argument.partition("=")
        if argument.startswith("-"):
            name = "" if mark else option
            if mark and is_secret((option,)):
                yield value
        elif is_secret((name,)):
            yield argument
            name = ""


def _password(url: str) -> str | None:
    try:
        return urlsplit(url).password
    except ValueError:
        return None
