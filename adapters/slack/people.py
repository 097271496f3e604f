"""How people are known: Slack tells an id, and asks to look the name up. Remembers some for a while."""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final, cast

from adapters.slack.client import Client
from gateway.domain.errors import AdapterError
from gateway.ports import Clock

logger = logging.getLogger(__name__)

KEPT: Final = 1_000
FRESH_SECONDS: Final = 3_600.0
FAILED_SECONDS: Final = 60.0
LOOK_UP_SECONDS: Final = 1.0
"""A name is not worth more of the time in which a message must be acknowledged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    name: str
    until: float


class People:
    """The names of one workspace."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def meet(self, user: str) -> None:
        """Look a person up who is not known yet; without an answer in time they stay an id."""
        known = self._known.get(user)
        if not user or (known is not None and known.until > self._clock.monotonic()):
            return
        name, seconds = user if known is None else known.name, FAILED_SECONDS
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                found = await self._client.ask("users.info", user=user)
            name, seconds = _name(cast("dict[str, Any]", found["user"])) or user, FRESH_SECONDS
        except (AdapterError, TimeoutError) as error:
            logger.debug("the name of %s is not known: %s", user, error)
        self._known[user] = _Known(name=name, until=self._clock.monotonic() + seconds)
        self._known.move_to_end(user)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)

    def name(self, user: str) -> str:
        """Return how somebody is known, their id when nothing else is."""
        known = self._known.get(user)
        return user if known is None else known.name


def _name(user: dict[str, Any]) -> str:
    profile = cast("dict[str, Any]", user.get("profile") or {})
    for name in (profile.get("display_name"), profile.get("real_name"), user.get("real_name")):
        if name:
            return str(name)
    return str(user.get("name") or "")
