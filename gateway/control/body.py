"""Reads the JSON object of a request and its fields; what is wrong is named."""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from starlette.requests import Request

from gateway.control.problems import Problem

MAX_BODY_BYTES: Final = 1_000_000

T = TypeVar("T")


class Body:
    """The fields of a request."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def text(self, name: str) -> str:
        """Return a text that must be there and not be empty.

        Raises:
            Problem: It is not.
        """
        value = self.text_or(name, "")
        if not value.strip():
            raise Problem("invalid_arguments", f"{name} is missing")
        return value

    def text_or(self, name: str, default: str) -> str:
        """Return a text, or the default when it is left out or null."""
        return self._typed(name, str, "a text", default)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a truth value."""
        return self._typed(name, bool, "true or false", default)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, empty when it is left out or null."""
        values = cast("list[object]", self._typed(name, list, "a list of texts", []))
        if not all(isinstance(value, str) for value in values):
            raise Problem("invalid_arguments", f"{name} must be a list of texts")
        return tuple(str(value) for value in values)

    def number(self, name: str, *, default: int | None = None) -> int:
        """Return a whole number.

        Raises:
            Problem: It is something else, or missing where there is no default.
        """
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Problem("invalid_arguments", f"{name} must be a whole number")
        return value

    def object_or_none(self, name: str) -> Mapping[str, Any] | None:
        """Return an object, None when it is left out or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise Problem("invalid_arguments", f"{name} must be an object")
        return cast("dict[str, Any]", value)

    def refuse(self, name: str) -> None:
        """Refuse a field that would change what is done, and that this version cannot honour."""
        if self.values.get(name):
            raise Problem("invalid_arguments", f"{name} is not supported by this version")

    def _typed(self, name: str, kind: type[T], what: str, default: T) -> T:
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise Problem("invalid_arguments", f"{name} must be {what}")
        return value


async def read_body(request: Request) -> Body:
    """Return the object a request carries; no body is an empty one.

    Raises:
        Problem: It is too large, or no JSON object.
    """
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > MAX_BODY_BYTES:
            raise Problem("too_large", f"a request has at most {MAX_BODY_BYTES} bytes")
    if not raw:
        return Body({})
    try:
        value: object = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Problem("invalid_arguments", f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Problem("invalid_arguments", "the body must be a JSON object")
    return Body(cast("dict[str, Any]", value))
