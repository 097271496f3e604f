"""The keys of a server entry about when it runs and how its calls share it. Starts nothing."""

from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, BaseModel, Field

KEEPALIVE_FLOOR: Final = 5.0
"""Seconds; a shorter interval would be load without more life."""

LIFECYCLE_KEYS: Final = ("idle_timeout_seconds", "max_lifetime_seconds")
"""Keys that an entry may also write below `lifecycle`."""

STDIO_CONNECTIONS: Final = 1
NETWORK_CONNECTIONS: Final = 4


def _at_least_floor(seconds: float) -> float:
    return max(seconds, KEEPALIVE_FLOOR)


_Limit: TypeAlias = Annotated[float, Field(ge=0, le=31_536_000, allow_inf_nan=False)]
_Interval: TypeAlias = Annotated[
    float, Field(gt=0, le=86_400, allow_inf_nan=False), AfterValidator(_at_least_floor)
]


class LifecycleConfig(BaseModel):
    """When a server starts and ends, and who may use it at once; a limit of 0 is none.

    `max_connections` None is `STDIO_CONNECTIONS` or `NETWORK_CONNECTIONS`, by transport.
    """

    lazy: bool = False
    keepalive_interval: _Interval = 180
    idle_timeout_seconds: _Limit = 0
    max_lifetime_seconds: _Limit = 0
    supports_parallel_tool_calls: bool = False
    exclusive: bool = False
    max_connections: Annotated[int, Field(ge=1, le=64)] | None = None
