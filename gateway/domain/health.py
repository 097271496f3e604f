"""How a connection to a chat platform is, as `status` and `/status` show it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class HealthState(StrEnum):
    """`CONNECTED`: it is receiving. `OFF`: it is not meant to run, or could not be started."""

    CONNECTED = "connected"
    DEGRADED = "degraded"
    UNAUTHORIZED = "unauthorized"
    CONNECTING = "connecting"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`since` is when the state began; `reason` is for people, "" when there is nothing to say.

    `sends` is false while nothing reaches the platform either.
    """

    state: HealthState
    since: datetime
    reason: str = ""
    sends: bool = True
