"""The runtime's own sections of the configuration, as values. Reading the file is elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.domain.question import Approvers


class BusyMode(StrEnum):
    """What becomes of a message that arrives during a turn."""

    QUEUE = "queue"
    INTERRUPT = "interrupt"
    STEER = "steer"


class Route(StrEnum):
    """Where the card of an approval is shown."""

    HERE = "here"
    HOME = "home"
    DM_ADMINS = "dm-admins"


class PersonRole(StrEnum):
    """What somebody is to us; a `STRANGER` is not known and may do nothing."""

    ADMIN = "admin"
    USER = "user"
    GUEST = "guest"
    STRANGER = "stranger"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Section `gateway`; times in seconds."""

    busy_mode: BusyMode = BusyMode.QUEUE
    max_rounds: int = 20
    turn_timeout: float = 1800
    system_prompt: str = ""
    group_sessions_per_user: bool = True
    workspace: str = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsConfig:
    """Section `approvals`; `redact` are globs on the key names of arguments."""

    timeout: float = 300
    approvers: Approvers = field(default_factory=Approvers)
    quorum: int = 1
    redact: tuple[str, ...] = ("*token*", "*password*", "*secret*")
    route: Route = Route.HERE


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMatch:
    """Whom and where a rule is about; None matches everything. `channel` is `platform:chat`."""

    role: PersonRole | None = None
    platform: str | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """What the matched people may use; None says nothing about it.

    `allow` and `deny` are globs on tool aliases or toolsets (`mcp-<server>`), `commands` names.
    """

    match: RuleMatch = RuleMatch()
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] | None = None
    commands: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateConfig:
    """Section `access.rate`; 0 is no limit."""

    user_per_minute: int = 20
    chat_per_minute: int = 40
    tokens_per_day: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessConfig:
    """Section `access`; people are `platform:id`, rules are tried in order and the first holds."""

    admins: frozenset[str] = frozenset()
    roles: Mapping[PersonRole, frozenset[str]] = field(
        default_factory=dict[PersonRole, frozenset[str]]
    )
    tools: tuple[AccessRule, ...] = ()
    rate: RateConfig = RateConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSearchConfig:
    """Section `tools.tool_search`; the threshold is a share of the context window."""

    enabled: bool = True
    threshold_pct: float = 5.0
    listing_max_tokens: int = 4000
