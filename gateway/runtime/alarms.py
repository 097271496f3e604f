"""Tells the owner, in the home channels, once, when something has been wrong for a while and when it is over.

What `gateway status` shows is looked at here; the state is in memory, since it is about now.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gateway.domain.conversation import Channel
from gateway.domain.delivery import Origin
from gateway.domain.errors import StoreBroken, StoreBusy
from gateway.domain.health import Health, HealthState
from gateway.domain.ids import Account, Place
from gateway.domain.operations.deliveries import Enqueue
from gateway.ports import Channels, Clock, DeliveryStore, Renderer
from gateway.runtime.cards import one_line
from gateway.runtime.status import Status, StatusBoard
from gateway.runtime.wakeups import Wakeups

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
TELL_AFTER_SECONDS: Final = 60.0
"""What passes sooner is nobody's worry."""

_WRONG: Final = frozenset({HealthState.DEGRADED, HealthState.UNAUTHORIZED})
_STORE: Final[Account] = ("", "")
"""Stands for the store among the accounts."""


@dataclass(slots=True, kw_only=True)
class _Trouble:
    """What is wrong with an account or the store, since when, and whether it was told."""

    since: datetime
    began: float
    reason: str
    told: bool = False


class Alarms:
    """Watches the accounts and the store of one process."""

    def __init__(
        self,
        *,
        board: StatusBoard,
        channels: Channels,
        store: DeliveryStore,
        renderers: Mapping[str, Renderer],
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._board = board
        self._channels = channels
        self._store = store
        self._renderers = renderers
        self._wakeups = wakeups
        self._clock = clock
        self._troubles: dict[Account, _Trouble] = {}
        self._told_of_login: dict[str, datetime] = {}
        """Since when a server has needed the login that was told of."""

    async def check(self) -> None:
        """Look; somebody has to every `LOOK_SECONDS`. What cannot be told now is told later."""
        try:
            await self.look()
        except (StoreBusy, StoreBroken) as error:
            logger.info("the owner is told later: %s", error)

    async def look(self) -> None:
        """Compare the state with the last one, and tell what changed for the owner."""
        status = self._board.now()
        wrong = _wrong(status)
        for account, (since, reason) in wrong.items():
            known = self._troubles.setdefault(
                account, _Trouble(since=since, began=self._clock.monotonic(), reason=reason)
            )
            known.reason = reason
            # Nothing can be sent that cannot be stored, so the store is told of when it works.
            if account != _STORE and self._lasted(known) and not known.told:
                await self._tell(status, _begun(account, known), known)
                known.told = True
        for account in [account for account in self._troubles if account not in wrong]:
            known = self._troubles[account]
            if account == _STORE and self._lasted(known):
                await self._tell(status, _store_was(known, self._clock.now()), known)
            elif known.told:
                await self._tell(status, f"{_name(account)} receives messages again.", known)
            del self._troubles[account]
        await self._look_at_logins(status)

    async def _look_at_logins(self, status: Status) -> None:
        """Tell once of each server that needs a person to sign in, with the command for it."""
        needing = {item.name: item for item in status.servers if item.needs_login}
        for name in self._told_of_login.keys() - needing.keys():
            del self._told_of_login[name]
        for name, server in needing.items():
            if name not in self._told_of_login:
                self._told_of_login[name] = server.since
                text = f"MCP server {one_line(name)} is parked: {server.reason}"
                await self._send(status, text, f"login:{name}:{server.since.timestamp():.3f}")

    def _lasted(self, trouble: _Trouble) -> bool:
        return self._clock.monotonic() - trouble.began >= TELL_AFTER_SECONDS

    async def _tell(self, status: Status, text: str, trouble: _Trouble) -> None:
        await self._send(status, text, f"{trouble.since.timestamp():.3f}:{trouble.told}")

    async def _send(self, status: Status, text: str, about: str) -> None:
        for place in await self._homes(status):
            renderer = self._renderers.get(place.platform)
            parts = renderer.text(text) if renderer is not None else ()
            if parts:
                key = f"alarm:{place.session_key}:{about}"
                await self._store.enqueue(
                    Enqueue(place=place, group_key=key, parts=parts, origin=Origin.NOTICE)
                )
        self._wakeups.deliveries()

    async def _homes(self, status: Status) -> Sequence[Place]:
        """Return the home channels that can be reached: a note of today is no use tomorrow."""
        found: list[Place] = []
        for item in status.platforms:
            if item.health.state in _WRONG and not item.health.sends:
                continue
            name = f"{item.platform}@{item.account}" if item.account else item.platform
            home = await self._channels.resolve(name)
            if isinstance(home, Channel):
                found.append(home.place)
        return found


def _wrong(status: Status) -> dict[Account, tuple[datetime, str]]:
    found = {
        (item.platform, item.account): (item.health.since, _reason(item.health))
        for item in status.platforms
        if item.health.state in _WRONG
    }
    if status.store.busy_since is not None:
        found[_STORE] = (status.store.busy_since, status.store.reason)
    return found


def _reason(health: Health) -> str:
    return health.reason or health.state.value


def _begun(account: Account, trouble: _Trouble) -> str:
    return (
        f"{_name(account)} has not received messages since {trouble.since:%H:%M} UTC: "
        f"{trouble.reason}. They wait there; `hermes gateway status` has the state."
    )


def _store_was(trouble: _Trouble, now: datetime) -> str:
    return (
        f"The database could not be written from {trouble.since:%H:%M} to {now:%H:%M} UTC "
        f"({trouble.reason}). Nothing was lost: what came meanwhile is answered now."
    )


def _name(account: Account) -> str:
    platform, name = account
    return f"{platform.capitalize()}@{name}" if name else platform.capitalize()
