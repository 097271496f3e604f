"""What is put to a person, and how it ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.canonical import CanonicalJson
from gateway.domain.form import Form
from gateway.domain.ids import Actor, Place, QuestionId, SessionId, TurnId


class QuestionKind(StrEnum):
    """`ARGUMENTS` and `CHOICE` are guided mode's; they are never listed to other agents."""

    TOOL_CALL = "tool_call"
    ELICITATION = "elicitation"
    URL = "url"
    SAMPLING = "sampling"
    ARGUMENTS = "arguments"
    CHOICE = "choice"


class QuestionState(StrEnum):
    """Only `PENDING` changes, and once."""

    PENDING = "pending"
    ALLOWED = "allowed"
    DENIED = "denied"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Action(StrEnum):
    """What a button or command does. The first seven decide; the others only move a form.

    `TIMEOUT` and `WITHDRAW` are written by the gateway itself, never offered.
    """

    ALLOW_ONCE = "allow-once"
    ALLOW_SESSION = "allow-session"
    ALLOW_ALWAYS = "allow-always"
    DENY = "deny"
    SUBMIT = "submit"
    DECLINE = "decline"
    CANCEL = "cancel"
    EDIT = "edit"
    ANSWER = "answer"
    SHOW_FULL = "show-full"
    PICK = "pick"
    TOGGLE = "toggle"
    SKIP = "skip"
    TIMEOUT = "timeout"
    WITHDRAW = "withdraw"


class Surface(StrEnum):
    """By which way somebody decided."""

    BUTTON = "button"
    MODAL = "modal"
    COMMAND = "command"
    REPLY = "reply"
    CLI = "cli"
    DASHBOARD = "dashboard"
    BRIDGE = "bridge"
    CHANNEL = "channel"
    TIMEOUT = "timeout"
    SYSTEM = "system"


class ApproverPolicy(StrEnum):
    """Who may decide besides an admin (`approvals.approvers`)."""

    REQUESTER = "requester"
    ADMINS = "admins"
    LIST = "list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvers:
    """The rule of who may decide, frozen when the question is asked; `ids` are `platform:id`."""

    policy: ApproverPolicy = ApproverPolicy.REQUESTER
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A token the platform carries, and what it means here; `argument` is JSON text or ""."""

    token: str
    action: Action
    label: str
    argument: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How a question ended; never changes afterwards."""

    question: QuestionId
    state: QuestionState
    action: Action
    by: Actor | None
    via: Surface
    at: datetime
    reason: str = ""
    content: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try to decide; `outcome` is `counted`, or why it changed nothing."""

    by: Actor
    via: Surface
    action: Action
    outcome: str
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the books hold of a question: every try, and what its call gave, "" while it did not run."""

    attempts: tuple[Attempt, ...] = ()
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question as its row holds it; `arguments` is the exact text that will run.

    `place` is the conversation whose work waits, `shown_in` where the card is. `session` may
    be None only before it is stored (the store takes the conversation's current one).
    """

    id: QuestionId
    short: str
    kind: QuestionKind
    place: Place
    shown_in: Place
    requester: Actor
    actions: tuple[Action, ...]
    body: str
    args_sha: str
    created_at: datetime
    expires_at: datetime
    approvers: Approvers = Approvers()
    quorum: int = 1
    session: SessionId | None = None
    turn: TurnId | None = None
    step: int | None = None
    server: str = ""
    server_sha: str = ""
    tool: str = ""
    tool_def_sha: str = ""
    arguments: CanonicalJson | None = None
    form: Form | None = None
    state: QuestionState = QuestionState.PENDING
    decision: Decision | None = None
    consumed: bool = False
