"""The parameters of one call, from wherever the SDK put them: query, form or JSON (facts §2.2)."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from aiohttp import web

from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.state import Json

_NESTED: Final = frozenset(
    ["blocks", "attachments", "metadata", "view", "files", "prompts", "chunks"]
)


class Params:
    """Typed access that remembers what was never looked at."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        # The SDK also names the team, which matters to tokens of a whole organisation.
        self._unread = set(values) - {"token", "team_id"}

    @property
    def unread(self) -> list[str]:
        return sorted(self._unread)

    def given(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        value = self._take(name)
        return default if value is None else str(value)

    def whole(self, name: str, default: int) -> int:
        value = self._take(name)
        return default if value in (None, "") else int(value)

    def flag(self, name: str) -> bool:
        return str(self._take(name)).lower() in ("true", "1")

    def array(self, name: str) -> list[Json]:
        return cast("list[Json]", self._take(name) or [])

    def mapping(self, name: str) -> Json | None:
        return cast("Json | None", self._take(name))

    def _take(self, name: str) -> Any:
        self._unread.discard(name)
        return self.values.get(name)


async def read(request: web.Request) -> Params:
    """Read them.

    Raises:
        ApiError: the body cannot be read.
    """
    values: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json" and request.can_read_body:
        given = await request.json()
        if not isinstance(given, dict):
            raise ApiError("invalid_json")
        values |= cast("Json", given)
    elif request.can_read_body:
        values |= dict(await request.post())
    for name in _NESTED & values.keys():
        if isinstance(values[name], str):
            try:
                values[name] = json.loads(values[name])
            except ValueError as error:
                raise ApiError("invalid_arguments") from error
    return Params(values)
