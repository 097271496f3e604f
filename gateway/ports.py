"""What the core needs from the outside, as protocols it owns.

The store is asked with single values (`gateway.domain.operations`), so nobody holds a transaction;
reading is separate, in small ports.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from gateway.domain.canonical import CanonicalJson
from gateway.domain.conversation import (
    Activity,
    Ambiguous,
    Channel,
    ConversationPage,
    ConversationView,
    SessionView,
    StoredMessage,
)
from gateway.domain.delivery import Delivery, DeliveryStatus, Outcome, Part, Receipt
from gateway.domain.events import EventPage
from gateway.domain.form import Form, FormAnswer, FormState
from gateway.domain.ids import (
    Actor,
    ConversationId,
    Cursor,
    DeliveryId,
    InboundId,
    MessageId,
    Place,
    QuestionId,
    RuleId,
    SessionId,
    TurnId,
)
from gateway.domain.message import InboundEvent
from gateway.domain.model import ModelReply, ModelRequest
from gateway.domain.operations.deliveries import ClaimDelivery, Enqueue, Enqueued
from gateway.domain.operations.inbound import (
    Accept,
    Accepted,
    Duplicate,
    MigrateChat,
    StoredInbound,
)
from gateway.domain.operations.questions import (
    AnswerField,
    Ask,
    Decide,
    ExpireDue,
    RefuseAttempt,
    Ruling,
    Settled,
    Stale,
    Withdraw,
)
from gateway.domain.operations.turns import (
    Claim,
    Committed,
    CommitTurn,
    Compact,
    Recorded,
    RecordSteps,
    Release,
    TurnEnd,
)
from gateway.domain.operations.upkeep import (
    AddAudit,
    DueTimer,
    Prune,
    Pruned,
    PutServer,
    PutTimer,
    Recovered,
    RevokeRule,
    SeeTools,
    SetHome,
    SetTitle,
    StandingRule,
)
from gateway.domain.question import Action, Button, Decision, Question
from gateway.domain.tools import (
    Reloaded,
    ServerStatus,
    ToolCall,
    ToolHit,
    ToolResult,
    ToolSpec,
)


class Clock(Protocol):
    """Time, so that tests can hold it."""

    def now(self) -> datetime:
        """Return the aware wall-clock time."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds of this clock."""
        ...


# --- chat platforms ---------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a platform can do, read as data instead of asked by name.

    `max_inline` is how many of the platform's units of arguments a card shows before they
    become a file (CONTRACTS §e), None without a cap. `uploads` false: longer ones are refused.
    """

    max_text: int | None
    buttons: bool
    max_inline: int | None = None
    edits: bool = False
    threads: bool = False
    uploads: bool = False
    modal_fields: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    """What a card shows, before a platform's renderer lays it out; every text is untrusted.

    `arguments` is indented JSON, redacted and escaped, "" when there are none. `lines` are
    short facts (who asks, when it expires, the id). `field` is what a typed reply answers,
    with `reply_token` the button row that carries it. `closed` is the last line of a closed
    card; it then has no buttons.
    """

    question: QuestionId
    short: str
    title: str
    text: str
    arguments: str = ""
    lines: tuple[str, ...] = ()
    buttons: tuple[Button, ...] = ()
    reply_token: str = ""
    reply_hint: str = ""
    field: str = ""
    closed: str = ""


class Renderer(Protocol):
    """Lays texts and cards out for one platform; pure, and no visible character is lost."""

    @property
    def capabilities(self) -> Capabilities: ...

    def text(self, markdown: str) -> tuple[Part, ...]:
        """Return the messages of a reply; none for an empty text."""
        ...

    def card(self, view: CardView) -> tuple[Part, Part | None]:
        """Return the card, and the file that must go first when the arguments do not fit it."""
        ...

    def closed_card(self, view: CardView) -> Part:
        """Return the edit that closes a card."""
        ...


class EventSink(Protocol):
    """Where adapters put what arrives."""

    async def emit(self, event: InboundEvent, *, position: tuple[str, str] | None = None) -> None:
        """Accept a normalised event; returns once it is stored (or known, or refused).

        Raises:
            StoreBusy: Nothing is stored; the platform must not be acknowledged.
        """
        ...


class Adapter(Protocol):
    """One account on one chat platform."""

    @property
    def platform(self) -> str: ...

    @property
    def account(self) -> str: ...

    async def run(self, sink: EventSink) -> None:
        """Stay connected and feed `sink` until cancelled or the platform ends."""
        ...

    async def send(self, delivery: Delivery) -> Receipt:
        """Deliver one text, card, file or edit and return the platform's id for it.

        Raises:
            DeliveryDeferred: The platform wants us to retry later.
            DeliveryUnsure: No answer; it may have arrived.
            DeliveryRejected: The platform will never accept this message.
        """
        ...

    async def settle_unsure(self, delivery: Delivery) -> Receipt | None:
        """Find a send whose answer was lost; None when it certainly did not arrive.

        Raises:
            DeliveryUnsure: It cannot be found out.
        """
        ...


class PressAnswering(Protocol):
    """Optional port: an adapter that must answer a press by itself (a toast, an ephemeral)."""

    async def answer_press(self, place: Place, interaction: str, text: str) -> None:
        """Show `text` to the presser alone; "" only acknowledges."""
        ...


# --- models and tools ---------------------------------------------------------


class ModelProvider(Protocol):
    """One configured model, its fallbacks included; guided mode is one too."""

    @property
    def name(self) -> str:
        """`provider:name`, or `guided`."""
        ...

    @property
    def context_window(self) -> int | None:
        """Tokens, None when unknown."""
        ...

    @property
    def asks_person(self) -> bool:
        """True for guided mode: it works with the functions that ask a person."""
        ...

    async def complete(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the reply to one request; `on_text` gets the text as it is generated.

        Raises:
            ModelError: One of its classes, with how it may be treated.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRequest:
    """A server's question: its form, or why it cannot be asked (`problem`, for the person).

    `timeout` is how many seconds the person has, None as for an approval.
    """

    server: str
    server_sha: str
    tool: str
    form: Form
    problem: str = ""
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """May the call run? `question` is the approval it will use up, None when a rule or nobody asked."""

    allowed: bool
    reason: str = ""
    question: QuestionId | None = None
    decision: Decision | None = None


class Approver(Protocol):
    """What one tool call may ask of the conversation it belongs to; made anew for each call."""

    async def approve(self, spec: ToolSpec) -> Approval:
        """Ask whether `spec` may run with the call's arguments; an expiry is an answer too."""
        ...

    async def started(self, question: QuestionId | None) -> CanonicalJson:
        """Write down that the call goes out now; return the arguments that must run.

        Raises:
            Conflict: The approval was used up, or what it covers has changed: nothing may run.
            Fenced: The conversation is no longer ours: nothing may run.
        """
        ...

    async def elicit(self, request: FormRequest) -> FormAnswer:
        """Put a server's form to the person; cancelled by the caller, the card is withdrawn."""
        ...


class ToolHost(Protocol):
    """All MCP servers behind one dispatch function."""

    def tools(self) -> Sequence[ToolSpec]:
        """Every registered tool, by alias."""
        ...

    def find(self, name: str) -> ToolSpec | None:
        """Find by alias, by the older single-underscore form, or by an unambiguous tool name."""
        ...

    def search(self, query: str, *, limit: int) -> Sequence[ToolHit]:
        """Rank the registered tools for a query, best first."""
        ...

    def servers(self) -> Sequence[ServerStatus]: ...

    async def wait_ready(self, seconds: float) -> None:
        """Return when every server is listed or parked, at the latest after `seconds`."""
        ...

    async def call(self, call: ToolCall, approver: Approver) -> ToolResult:
        """Run one call through filter, trust gate, transport and sanitiser.

        Everything that goes wrong is a result; only `Fenced` and cancellation pass through.
        """
        ...

    async def reload(self, server: str | None = None) -> Reloaded:
        """Apply the configuration as it is now; a named server is reconnected in any case."""
        ...


# --- the store: one operation, one value, one transaction --------------------


class InboundStore(Protocol):
    async def accept(self, accept: Accept) -> Accepted | Duplicate:
        """Store an event once, with its message and its place in the stream."""
        ...

    async def finish(self, inbound: InboundId) -> None:
        """Mark a control event as worked off."""
        ...

    async def migrate_chat(self, migrate: MigrateChat) -> int:
        """Move a chat's conversations to its new id; return how many."""
        ...


class TurnStore(Protocol):
    async def claim_turn(self, *, worker: str) -> Claim | None:
        """Take the conversation that waits longest, with its open turn or its next input."""
        ...

    async def record_steps(self, steps: RecordSteps) -> Recorded:
        """Write what was answered, planned, is about to be called, and came back.

        Raises:
            Fenced: Another worker holds the conversation.
            Conflict: A gated step's approval is used up or covers something else.
        """
        ...

    async def commit_turn(self, commit: CommitTurn) -> Committed:
        """End the turn and release the claim: reply, deliveries and event together, or nothing.

        Raises:
            Fenced: Another worker holds the conversation.
        """
        ...

    async def release(self, release: Release) -> None: ...

    async def compact(self, compact: Compact) -> None: ...


class QuestionStore(Protocol):
    async def ask(self, ask: Ask) -> Question:
        """Store a question with its buttons, its card and its event.

        Raises:
            Conflict: Its id, or the short id while pending, is taken: repeat with a new one.
        """
        ...

    async def answer_field(self, answer: AnswerField) -> FormState | Stale: ...

    async def decide(self, decide: Decide) -> Ruling:
        """Settle a question if it is still open; the first one wins."""
        ...

    async def refuse(self, attempt: RefuseAttempt) -> None: ...

    async def withdraw(self, withdraw: Withdraw) -> Sequence[Settled]: ...

    async def expire_due(self, expire: ExpireDue) -> Sequence[Settled]: ...


class DeliveryStore(Protocol):
    async def enqueue(self, enqueue: Enqueue) -> Enqueued: ...

    async def claim_delivery(self, claim: ClaimDelivery) -> Delivery | None:
        """Take the next one that may be sent; its row says `sending` before the call is made."""
        ...

    async def mark_delivery(self, outcome: Outcome) -> None: ...


class UpkeepStore(Protocol):
    async def recover(self, *, worker: str) -> Recovered:
        """Free what an earlier process held; at boot, before adapters start."""
        ...

    async def prune(self, prune: Prune) -> Pruned: ...

    async def set_home(self, home: SetHome) -> None: ...

    async def set_title(self, title: SetTitle) -> None: ...

    async def revoke_rule(self, revoke: RevokeRule) -> StandingRule | None:
        """End a rule; None when it is unknown or was revoked before."""
        ...

    async def put_server(self, server: PutServer) -> None: ...

    async def see_tools(self, seen: SeeTools) -> None: ...

    async def add_audit(self, line: AddAudit) -> None: ...

    async def put_timer(self, timer: PutTimer) -> None: ...

    async def claim_timer(self, *, worker: str, lease_until: datetime) -> DueTimer | None: ...

    async def done_timer(self, name: str) -> None: ...


class Store(InboundStore, TurnStore, QuestionStore, DeliveryStore, UpkeepStore, Protocol):
    """Everything that writes. A component asks for the part it needs."""


# --- reading ------------------------------------------------------------------


class EventReader(Protocol):
    async def head(self) -> Cursor: ...

    async def after(
        self, cursor: Cursor, *, session_key: str | None = None, limit: int
    ) -> EventPage:
        """Events behind `cursor` in commit order; a gap is said, never skipped."""
        ...

    async def wait(self, cursor: Cursor, *, session_key: str | None = None) -> None:
        """Return when `after` has something; cancelling it frees the waiter."""
        ...


class Inbox(Protocol):
    async def controls(self) -> Sequence[StoredInbound]:
        """Control events that were accepted and are not worked off, oldest first."""
        ...

    async def find(self, inbound: InboundId) -> StoredInbound | None: ...

    async def waiting(self, place: Place) -> int:
        """How many inputs of the turn lane wait in a conversation."""
        ...

    async def activity(self, place: Place) -> Activity:
        """Whether a conversation works, waits for an answer, or has nothing left to do."""
        ...

    async def last_turn(self, place: Place) -> tuple[TurnId, TurnEnd | None] | None:
        """The newest turn of a conversation and how it ended, None while it runs."""
        ...


class Conversations(Protocol):
    async def page(
        self,
        *,
        platform: str | None = None,
        search: str | None = None,
        before: str | None = None,
        limit: int,
    ) -> ConversationPage: ...

    async def find(self, session_key: str) -> ConversationView | None: ...

    async def sessions(
        self, conversation: ConversationId, *, limit: int
    ) -> Sequence[SessionView]: ...

    async def messages(
        self,
        session: SessionId,
        *,
        before: MessageId | None = None,
        after: MessageId | None = None,
        limit: int,
    ) -> Sequence[StoredMessage]:
        """Messages people can read, chronological: the newest `limit`, or next to a bound."""
        ...

    async def history(self, session: SessionId, *, limit: int) -> Sequence[StoredMessage]:
        """What the model may see: the newest `limit`, chronological, a summary first."""
        ...


class Questions(Protocol):
    async def find(self, id_or_short: str) -> Question | Ambiguous | None:
        """Find by id, by the short id of a pending one, or by an unambiguous prefix."""
        ...

    async def of_step(self, turn: TurnId, step: int) -> Question | None:
        """The newest question a step asked."""
        ...

    async def pending(
        self,
        *,
        turn: TurnId | None = None,
        shown_in: Place | None = None,
        due: datetime | None = None,
        limit: int = 200,
    ) -> Sequence[Question]:
        """Pending ones of every kind, oldest first; `due` keeps those that expire by then."""
        ...

    async def open(self, *, limit: int) -> Sequence[Question]:
        """Pending ones that may be listed to others (not guided mode's)."""
        ...

    async def page(self, *, before: str | None = None, limit: int) -> Sequence[Question]:
        """All, newest first; `before` is a question id."""
        ...

    async def by_token(self, token: str) -> tuple[Question, Button] | None: ...

    async def buttons(self, question: QuestionId) -> Sequence[Button]:
        """The buttons of a question in the order they were made, `label` left empty."""
        ...

    async def form_state(self, question: QuestionId) -> FormState | None: ...

    async def next_expiry(self) -> datetime | None: ...


class Rules(Protocol):
    async def match(self, spec: ToolSpec, *, session: SessionId | None) -> RuleId | None:
        """The standing rule that allows this very definition of a tool."""
        ...

    async def live(self) -> Sequence[StandingRule]: ...


class Channels(Protocol):
    async def page(
        self, *, platform: str | None = None, search: str | None = None, limit: int
    ) -> Sequence[Channel]: ...

    async def resolve(self, target: str) -> Channel | Ambiguous | None:
        """Resolve `platform`, `platform:chat`, `platform:chat:thread`, `platform:#name` (SPEC §3).

        Never falls back to the home channel.
        """
        ...


class Deliveries(Protocol):
    async def group(self, group_key: str) -> Sequence[DeliveryStatus]: ...

    async def unsure(self, platform: str, account: str) -> Sequence[Delivery]: ...

    async def cards(self, place: Place) -> Sequence[Delivery]:
        """The newest sent card of each pending question shown in a conversation, oldest first."""
        ...

    async def next_at(self, platform: str, account: str) -> datetime | None:
        """When the next ready delivery of an account may be tried."""
        ...


class Books(Protocol):
    async def usage(self, *, since: datetime, actor: Actor | None = None) -> Mapping[str, int]:
        """Tokens by model since then."""
        ...

    async def audit(self, *, before: int | None = None, limit: int) -> Sequence[AddAudit]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """The read ports of one store."""

    events: EventReader
    inbox: Inbox
    conversations: Conversations
    questions: Questions
    rules: Rules
    channels: Channels
    deliveries: Deliveries
    books: Books


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """`busy_since` is set while writes fail and are repeated; `broken` stops accepting for good."""

    busy_since: datetime | None = None
    broken: str = ""


# --- other programs -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    target: str
    text: str
    attachments: tuple[str, ...] = ()
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    platform: str
    chat: str
    message_ids: tuple[str, ...]
    delivery: DeliveryId


class GatewayClient(Protocol):
    """The running gateway, as a shell command or the bridge sees it."""

    async def send(self, request: SendRequest) -> SendResult:
        """Return once the platform gave its id.

        Raises:
            GatewayNotRunning: At once, nothing is queued.
            GatewayRefused: With a code of the control API.
        """
        ...

    async def decide(self, question: str, *, action: Action, reason: str = "") -> Decision: ...
