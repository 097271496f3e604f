"""Recovery at boot, retention, and the small writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gateway.domain.ids import (
    Actor,
    ConversationId,
    Cursor,
    DeliveryId,
    Place,
    QuestionId,
    RuleId,
    SessionId,
)
from gateway.domain.question import Surface
from gateway.domain.tools import ServerState, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What an earlier process left: open turns, sends of unknown outcome, orphaned questions.

    `questions` are pending ones whose waiter died with that process: elicitations, URLs,
    sampling, and any whose turn has ended.
    """

    turns: int
    deliveries: tuple[DeliveryId, ...]
    questions: tuple[QuestionId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prune:
    """`events_before` is the last event to go, `events_until` when the last one of them was."""

    events_before: Cursor | None = None
    events_until: datetime | None = None
    media_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    events: int
    media_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHome:
    """Make a place the home channel of its platform and account.

    `default`: only where nobody else has chosen one; what `by` set before is set anew.
    """

    place: Place
    by: Actor
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTitle:
    session: SessionId
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetModel:
    """Let a session's turns ask this model from now on; "" is the one of the configuration."""

    session: SessionId
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRule:
    rule: RuleId
    by: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class PutServer:
    """The state of one MCP server, as `status` and the bridge read it."""

    name: str
    config_sha: str
    server_sha: str
    state: ServerState
    reason: str = ""
    attempts: int = 0
    next_probe_at: datetime | None = None
    era: str = ""
    elicits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PinTool:
    """Keep a tool as it is, because somebody allowed it; `definition` is what they could see of it."""

    tool: ToolSpec
    definition: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddAudit:
    """A line of the books that is not a vote; `detail` is already redacted."""

    actor: Actor
    surface: Surface
    action: str
    subject: str
    detail: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class PutTimer:
    """Something to do at `due_at`, surviving restarts; `every_ms` None means once."""

    name: str
    kind: str
    due_at: datetime
    every_ms: int | None = None
    payload: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTimer:
    name: str
    kind: str
    payload: Mapping[str, object]
    every_ms: int | None
    due_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRule:
    """An "allow for this session" or "always allow" that is in force."""

    id: RuleId
    scope: str
    session: SessionId | None
    server: str
    tool: str
    tool_def_sha: str
    granted_by: Actor
    created_at: datetime
    used_count: int
    conversation: ConversationId | None = None
