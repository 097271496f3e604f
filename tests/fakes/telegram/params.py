"""The parameters of one call, whichever of the four ways they came in."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from aiohttp import web

from tests.fakes.telegram.errors import ApiError, bad_request
from tests.fakes.telegram.state import Json

_NESTED_NAMES: Final = (
    "reply_markup reply_parameters entities caption_entities link_preview_options allowed_updates"
    " commands scope reaction media message_ids"
)
"""These are written as JSON inside a form."""
_NESTED: Final = frozenset(_NESTED_NAMES.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    name: str
    media_type: str
    data: bytes


class Params:
    """Typed access that remembers what was never looked at."""

    def __init__(self, values: Mapping[str, Any], uploads: Mapping[str, Upload]) -> None:
        self.values = values
        self.uploads = uploads
        self._unread = set(values)
        self._unused = set(uploads)

    @property
    def unread(self) -> list[str]:
        return sorted(self._unread | self._unused)

    def given(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        value = self._take(name)
        return default if value is None else str(value)

    def whole(self, name: str, default: int = 0) -> int:
        value = self._take(name)
        return default if value is None else int(value)

    def flag(self, name: str) -> bool:
        return str(self._take(name)).lower() in ("true", "1")

    def mapping(self, name: str) -> Json | None:
        return cast("Json | None", self._take(name))

    def array(self, name: str) -> list[Any]:
        return cast("list[Any]", self._take(name) or [])

    def upload(self, name: str) -> Upload | None:
        self._unused.discard(name)
        return self.uploads.get(name)

    def inside(self, values: Mapping[str, Any]) -> "Params":
        """Return the parameters of one item of an album."""
        return Params(values, self.uploads)

    def _take(self, name: str) -> Any:
        self._unread.discard(name)
        return self.values.get(name)


async def read(request: web.Request) -> Params:
    """Read query, form, multipart or JSON.

    Raises:
        ApiError: the body cannot be read.
    """
    values: dict[str, Any] = dict(request.query)
    uploads: dict[str, Upload] = {}
    if request.content_type == "application/json":
        given = await request.json()
        if not isinstance(given, dict):
            raise bad_request("request body must be a JSON object")
        values |= cast("dict[str, Any]", given)
    elif request.can_read_body:
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                uploads[name] = _upload(value)
            else:
                values[name] = value
    for name in _NESTED & values.keys():
        values[name] = _nested(name, values[name])
    return Params(values, uploads)


def _upload(field: web.FileField) -> Upload:
    return Upload(name=field.filename, media_type=field.content_type, data=field.file.read())


def _nested(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        problem = f"can't parse {name.replace('_', ' ')} JSON object"
        raise ApiError(400, f"Bad Request: {problem}") from error
