"""The chat platforms of a configuration: each adapter with what the runtime needs to know of it."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.domain.health import Health, HealthState
from gateway.domain.ids import Place
from gateway.ports import Adapter, Clock, PressAnswering, Renderer

if TYPE_CHECKING:
    from gateway.config.schema import Config
    from gateway.runtime.delivery import Budget

logger = logging.getLogger(__name__)

Account = tuple[str, str]
"""Platform and account."""


@dataclass(slots=True, kw_only=True)
class Platforms:
    """What was built; `health` also has the accounts that could not be started, with the reason.

    `homes` are the home channels of the configuration.
    """

    adapters: list[Adapter] = field(default_factory=list[Adapter])
    renderers: dict[str, Renderer] = field(default_factory=dict[str, Renderer])
    budgets: "dict[Account, Budget]" = field(default_factory=dict[Account, "Budget"])
    answering: dict[Account, PressAnswering] = field(default_factory=dict[Account, PressAnswering])
    allowed: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    health: dict[Account, Callable[[], Health]] = field(
        default_factory=dict[Account, Callable[[], Health]]
    )
    homes: list[Place] = field(default_factory=list[Place])

    def off(self, platform: str, account: str, *, reason: str, clock: Clock) -> None:
        """Note an account that does not run."""
        logger.error("%s is off: %s", f"{platform}@{account}" if account else platform, reason)
        health = Health(state=HealthState.OFF, since=clock.now(), reason=reason)
        self.health[(platform, account)] = lambda: health


def build_platforms(config: "Config", *, environ: Mapping[str, str], clock: Clock) -> Platforms:
    """Build every platform that is configured; one that cannot be built stops no other."""
    del environ
    built = Platforms()
    for name in config.platforms:
        built.off(name, "", reason="this version does not support it", clock=clock)
    return built
