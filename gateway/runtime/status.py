"""How the running gateway is, collected from those who know. Asks nobody anything that takes time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.health import Health, HealthState
from gateway.domain.ids import Account
from gateway.domain.tools import ServerStatus
from gateway.ports import StoreHealth, ToolHost
from gateway.runtime.heartbeat import LATE_SECONDS, Heartbeat


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformStatus:
    """One account of one platform; `account` is "" when it is the only one."""

    platform: str
    account: str
    health: Health


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How everything is now; `healthy` when messages are taken and answered on every platform.

    A parked MCP server is shown but leaves the gateway healthy: the rest works.
    """

    platforms: tuple[PlatformStatus, ...]
    servers: Sequence[ServerStatus]
    heartbeat_age: float
    store: StoreHealth

    @property
    def healthy(self) -> bool:
        """Whether nothing needs anybody's attention."""
        return (
            not self.store.broken
            and self.store.busy_since is None
            and self.heartbeat_age < LATE_SECONDS
            and all(item.health.state is HealthState.CONNECTED for item in self.platforms)
        )

    @property
    def store_state(self) -> str:
        """How the store is, in one word."""
        if self.store.broken:
            return "broken"
        return "ok" if self.store.busy_since is None else "busy"


class StatusBoard:
    """Collects the status; `platforms` say how they are when they are asked."""

    def __init__(
        self,
        *,
        platforms: Mapping[Account, Callable[[], Health]],
        host: ToolHost,
        store: Callable[[], StoreHealth],
        heartbeat: Heartbeat,
    ) -> None:
        self._platforms = platforms
        self._host = host
        self._store = store
        self._heartbeat = heartbeat

    def now(self) -> Status:
        """Return the status."""
        return Status(
            platforms=tuple(
                PlatformStatus(platform=platform, account=account, health=ask())
                for (platform, account), ask in self._platforms.items()
            ),
            servers=self._host.servers(),
            heartbeat_age=self._heartbeat.age,
            store=self._store(),
        )

    def health(self, platform: str, account: str) -> Health | None:
        """Return how an account is, None when this gateway does not run it."""
        ask = self._platforms.get((platform, account))
        return None if ask is None else ask()
