"""How the connection is, for `status`: connected means that updates really arrive."""

import logging
from collections.abc import Callable
from typing import Final

from gateway.domain.health import Health, HealthState
from gateway.ports import Clock

logger = logging.getLogger(__name__)

QUIET_SECONDS: Final = 90.0
"""Without a sign of life from the platform for so long, an account is not receiving."""


class Connection:
    """Keeps the state of one account; `on_change` is told every change."""

    def __init__(
        self,
        platform: str,
        account: str,
        clock: Clock,
        *,
        on_change: Callable[[Health], None] | None = None,
    ) -> None:
        self._name = f"{platform}@{account}" if account else platform
        self._clock = clock
        self._on_change = on_change
        self._health = Health(state=HealthState.CONNECTING, since=clock.now())
        self._heard_at = clock.monotonic()

    @property
    def health(self) -> Health:
        """How it is now; what has been quiet for too long is not connected."""
        silent = self._clock.monotonic() - self._heard_at
        if self._health.state is HealthState.CONNECTED and silent > QUIET_SECONDS:
            self._set(HealthState.DEGRADED, f"nothing heard for more than {QUIET_SECONDS:.0f} s")
        return self._health

    def connecting(self) -> None:
        """Say that it begins anew; what is wrong already stays said until it is right."""
        if self._health.state is HealthState.OFF:
            self._set(HealthState.CONNECTING, "")

    def heard(self) -> None:
        """Say that the platform gave a sign of life by the way things arrive."""
        self._heard_at = self._clock.monotonic()
        self._set(HealthState.CONNECTED, "")

    def degraded(self, reason: str, *, sends: bool = True) -> None:
        """Say that it does not receive for now, and why; and whether it still sends."""
        self._set(HealthState.DEGRADED, reason, sends=sends)

    def unauthorized(self, reason: str) -> None:
        """Say that the service does not know the token."""
        self._set(HealthState.UNAUTHORIZED, reason, sends=False)

    def off(self, reason: str) -> None:
        """Say that it does not run."""
        self._set(HealthState.OFF, reason)

    def _set(self, state: HealthState, reason: str, *, sends: bool = True) -> None:
        before = self._health
        if (before.state, before.reason) == (state, reason):
            return
        since = before.since if before.state is state else self._clock.now()
        self._health = Health(state=state, since=since, reason=reason, sends=sends)
        if before.state is not state:
            level = logging.INFO if state is HealthState.CONNECTED else logging.WARNING
            why = f": {reason}" if reason else ""
            logger.log(level, "%s: %s -> %s%s", self._name, before.state, state, why)
        if self._on_change is not None:
            self._on_change(self._health)
