"""Tools as the core sees them: what a server offers, one call, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gateway.domain.canonical import CanonicalJson
from gateway.domain.ids import Actor, Place, SessionId, TurnId
from gateway.domain.message import AttachmentKind
from gateway.domain.question import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A registered tool.

    `name` is the server's own name, `alias` the name the model uses (`mcp__server__tool`).
    `definition_sha` covers name, description, schemas and annotations; `server_sha` the
    server's identity. `server` "" marks a function of the core itself. `parallel`: calls of its
    server in one batch may run side by side. `utility`: a tool of ours for what the server
    offers besides tools.
    """

    server: str
    name: str
    alias: str
    title: str
    description: str
    input_schema: Mapping[str, object]
    definition_sha: str
    server_sha: str = ""
    read_only: bool = False
    idempotent: bool = False
    destructive: bool = True
    parallel: bool = False
    utility: bool = False

    @property
    def repeatable(self) -> bool:
        """True when a call whose outcome is unknown may simply be made again."""
        return self.read_only or self.idempotent


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedTool:
    """A tool as it was when somebody last allowed it; `definition` is what they could see of it."""

    definition_sha: str
    definition: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call by a model, by guided mode or by `/call`; `id` is the caller's."""

    id: str
    alias: str
    arguments: CanonicalJson
    place: Place
    requester: Actor
    session: SessionId | None = None
    turn: TurnId | None = None
    step: int | None = None


class CallState(StrEnum):
    """`REFUSED`: it did not run. `UNKNOWN`: it may have run, the outcome was lost."""

    OK = "ok"
    ERROR = "error"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFile:
    """A file that a call gave; not `for_chat`, it is kept for the model and sent to nobody."""

    kind: AttachmentKind
    media_type: str
    data: bytes = field(repr=False)
    name: str = ""
    for_chat: bool = True

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call gave; errors of the tool are results too. `ms` is transport time alone."""

    call: str
    state: CallState
    text: str
    structured: Mapping[str, object] | None = None
    meta: Mapping[str, object] = field(default_factory=dict[str, object])
    attachments: tuple[ToolFile, ...] = ()
    decision: Decision | None = None
    ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHit:
    """One result of the tool search, best first; a higher `score` is a better match."""

    spec: ToolSpec
    score: float


class ServerState(StrEnum):
    """The life of one MCP connection (DESIGN §4)."""

    DISABLED = "disabled"
    LAZY = "lazy"
    CONNECTING = "connecting"
    READY = "ready"
    RECYCLING = "recycling"
    PARKED = "parked"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What became of the tools a server offers.

    `found` counts them; `filtered` says how many each reason kept out; `collided` are the names
    that more than one tool would have had; `utilities_off` maps tools of ours to why they are off.
    """

    found: int = 0
    filtered: Mapping[str, int] = field(default_factory=dict[str, int])
    collided: tuple[str, ...] = ()
    utilities_off: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """How often a server asked a person for something, and what it was told."""

    requests: int = 0
    accepted: int = 0
    declined: int = 0
    cancelled: int = 0
    errors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatistics:
    """What a server did since this process knows it; times are those of its latest calls.

    `errors` counts the calls that gave no good result; `sampling` has the counters of its requests
    for our model by name. `connections` are open now; `most_connections` is how many there may be,
    more than one only where its questions could reach the wrong chat.
    """

    calls: int = 0
    errors: int = 0
    p50_ms: int | None = None
    p95_ms: int | None = None
    restarts: int = 0
    elicitation: Answers = field(default_factory=Answers)
    sampling: Mapping[str, int] = field(default_factory=dict[str, int])
    connections: int = 0
    most_connections: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """One line of `/mcp`; `tools` counts the registered ones, `notes` says what was left out.

    `lazy`: it starts on first use. `needs_login`: a person has to sign in to it first.
    """

    name: str
    state: ServerState
    since: datetime
    tools: int
    reason: str = ""
    next_probe_at: datetime | None = None
    notes: tuple[str, ...] = ()
    lazy: bool = False
    needs_login: bool = False
    selection: Selection = field(default_factory=Selection)
    statistics: ServerStatistics = field(default_factory=ServerStatistics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """What a reload of the servers changed, by name."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    parked: tuple[tuple[str, str], ...] = ()
