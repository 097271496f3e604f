"""Which configured values are secrets, so that logs and `config show` can leave them out."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast
from urllib.parse import urlsplit

from gateway.config.findings import KeyPath
from gateway.config.interpolate import Lookup

_SECRET_NAME: Final = re.compile(
    r"(?:token|secret|password|passwd|authorization|cookie|credential|api_?key|[_-]key)s?$",
    re.IGNORECASE,
)
_NOT_SECRET: Final = frozenset({"client_key", "max_tokens", "listing_max_tokens"})
_SCHEME: Final = re.compile(r"(?i)^(?:bearer|basic|token|bot)\s+")


def is_secret(path: KeyPath) -> bool:
    """Say whether the key at `path` holds a secret by its name or place."""
    names = [str(part) for part in path]
    if not names or names[-1] in _NOT_SECRET:
        return False
    return bool(_SECRET_NAME.search(names[-1])) or names[-2:] == ["client_cert", "2"]


def secrets_of(value: object, *, path: KeyPath = ()) -> Iterator[str]:
    """Yield the secrets written in a resolved document, passwords of URLs too."""
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
        for at, item in enumerate(cast("Sequence[object]", value)):
            yield from secrets_of(item, path=(*path, at))


def looked_up_secrets(lookups: Iterable[Lookup]) -> Iterator[str]:
    """Yield what came from the environment into a secret place, a header or a secret's name."""
    for lookup in lookups:
        if is_secret(lookup.path) or is_secret((lookup.variable,)) or "headers" in lookup.path:
            yield lookup.value


def _password(url: str) -> str | None:
    try:
        return urlsplit(url).password
    except ValueError:
        return None
