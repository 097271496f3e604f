"""The one object behind the server: the world, its clock, what was called, and what was told to the app."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.changes import Changes
from tests.fakes.slack.errors import ApiError
from tests.fakes.slack.faults import Faults
from tests.fakes.slack.outbox import Outbox
from tests.fakes.slack.rates import Meter
from tests.fakes.slack.state import Channel, Json, Team, World


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of the app: what was asked, and what came of it ("" is success, None while it runs)."""

    at: float
    method: str
    team: str
    values: Json
    error: str | None = None

    @property
    def channel(self) -> str:
        return str(self.values.get("channel") or self.values.get("channel_id") or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a test may want shorter or smaller than Slack has it."""

    ack_seconds: float = 3
    retry_seconds: tuple[float, ...] = (0.05, 0.1, 0.2)
    """After how long an event that was not acknowledged comes again."""
    upload_bytes: int = 1_000_000_000
    trigger_seconds: float = 3
    max_sockets: int = 10


@dataclass(kw_only=True)
class Service:
    """What the methods and the driver share."""

    unlimited: bool = False
    limits: Limits = field(default_factory=Limits)
    world: World = field(default_factory=World)
    faults: Faults = field(default_factory=Faults)
    calls: list[Call] = field(default_factory=list[Call])
    violations: list[str] = field(default_factory=list[str])
    pings_of_ours: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.changes = Changes()
        self.meter = Meter(unlimited=self.unlimited)
        self.outbox = Outbox(self)
        self.closing = asyncio.Event()
        self.released = asyncio.Event()
        """Ends every hang."""
        self.url = ""
        self.triggers: dict[str, tuple[float, str]] = {}

    def now(self) -> float:
        return time.time() + self.world.ahead

    def violation(self, *problems: str) -> None:
        """Note what no app should do, or what this server cannot stand in for."""
        self.violations.extend(problems)

    async def until(self, holds: Callable[[], Any], *, seconds: float = 10, what: str = "") -> Any:
        return await self.changes.until(holds, seconds=seconds, what=what)

    def trigger(self, user: str) -> str:
        """Return a trigger for a modal, good for a few seconds."""
        name = f"{self.world.number()}.{user}"
        self.triggers[name] = (self.now(), user)
        return name

    def user_of_trigger(self, name: str) -> str:
        """Use a trigger up.

        Raises:
            ApiError: it is none, or it is too old.
        """
        at, user = self.triggers.pop(name, (0.0, ""))
        if not user:
            raise ApiError(
                "invalid_trigger_id" if name not in self.triggers else "exchanged_trigger_id"
            )
        if self.now() - at > self.limits.trigger_seconds:
            raise ApiError("expired_trigger_id")
        return user

    def channel(self, team: Team, name: str, *, write: bool = False) -> Channel:
        """Return a channel the app may read, or write to.

        Raises:
            ApiError: it may not.
        """
        channel = team.channels.get(name)
        if channel is None:
            raise ApiError("channel_not_found")
        if write and channel.archived:
            raise ApiError("is_archived")
        if team.bot_user not in channel.members:
            raise ApiError("not_in_channel" if channel.kind == "channel" else "channel_not_found")
        return channel
