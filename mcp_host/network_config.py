"""The keys of a server reached over the network, as types that refuse what cannot be sent.

Knows no file and no socket. The messages never hold the value: it may be a secret.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo

UNSET: Final = "unset"
"""In the context of a validation: the variables that the URL or a header needs and nobody set."""

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_REPEATED_BEARER: Final = re.compile(r"(?i)bearer\s+(?=bearer\s)")
_SHAPES: Final = "must be a path, [certificate, key] or [certificate, key, password]"
_TRUTH: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class Transport(StrEnum):
    """How a server is reached."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


class IdentitySource(StrEnum):
    """Where the value of `identity_header` comes from."""

    STATIC = "static"
    PROFILE = "profile"


def _header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError("is no name for a header")
    return name


def _header_value(value: str) -> str:
    text = value.strip()
    if _CONTROL.search(text):
        raise ValueError("holds a control character")
    return text


def _header_values(value: object) -> object:
    """Take numbers and truth values as text, and a scheme that was pasted twice as one."""
    if not isinstance(value, Mapping):
        return value
    return {
        name: _once(str(name), _as_text(item))
        for name, item in cast("Mapping[object, object]", value).items()
    }


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


def _once(name: str, value: object) -> object:
    # A token that was copied with its scheme meets a template that has it too.
    if name.lower() != "authorization" or not isinstance(value, str):
        return value
    return _REPEATED_BEARER.sub("", value.strip())


def _address(value: str, info: ValidationInfo) -> str:
    text = value.strip()
    if cast("Mapping[str, object]", info.context or {}).get(UNSET):
        # What is missing may be the host itself; the server cannot be reached, and says so.
        return text
    if _CONTROL.search(text) or " " in text:
        raise ValueError("holds a space or a control character")
    try:
        parts = urlsplit(text)
        known = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError("is no URL") from None
    if parts.scheme.lower() not in {"http", "https"} or not known:
        raise ValueError("must begin with http:// or https:// and a host")
    return text


def _verification(value: object) -> bool | str:
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, bool):
        return text
    if not isinstance(text, str) or not text or "\0" in text:
        raise ValueError("is neither a truth value nor a path")
    return _TRUTH.get(text.lower(), text)


def _certificate(value: object) -> tuple[str, ...]:
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        raise ValueError(_SHAPES)
    parts = cast("Sequence[object]", items)
    texts = tuple(part for part in parts if isinstance(part, str))
    if len(texts) != len(parts) or len(texts) not in {1, 2, 3} or not all(texts[:2]):
        raise ValueError(_SHAPES)
    return texts


def _not_empty(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty")
    if "\0" in value:
        raise ValueError("must not contain NUL")
    return value


HeaderName: TypeAlias = Annotated[str, AfterValidator(_header_name)]
HeaderValue: TypeAlias = Annotated[str, AfterValidator(_header_value)]
Headers: TypeAlias = Annotated[dict[HeaderName, HeaderValue], BeforeValidator(_header_values)]
Url: TypeAlias = Annotated[str, AfterValidator(_address)]
FilePath: TypeAlias = Annotated[str, AfterValidator(_not_empty)]
Verification: TypeAlias = Annotated[bool | str, BeforeValidator(_verification)]
Certificate: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_certificate)]
"""One PEM file with both, or certificate and key, or these and the password of the key."""


class IdentityHeader(BaseModel):
    """Who this gateway says it is; with `profile` the value is the name of its profile."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: HeaderName
    value_from: IdentitySource = IdentitySource.STATIC
    value: Annotated[HeaderValue, AfterValidator(_not_empty)]
