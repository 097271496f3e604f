"""Claiming a conversation, journaling its turn, ending it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.canonical import CanonicalJson
from gateway.domain.delivery import Part
from gateway.domain.ids import (
    Actor,
    ConversationId,
    Cursor,
    InboundId,
    MessageId,
    Place,
    QuestionId,
    SessionId,
    TurnId,
)
from gateway.domain.model import Usage
from gateway.domain.operations.inbound import StoredInbound


class StepKind(StrEnum):
    MODEL = "model"
    TOOL = "tool"
    INPUT = "input"


class StepState(StrEnum):
    """`UNKNOWN`: it was out when the process ended, and may not be repeated."""

    PLANNED = "planned"
    SENT = "sent"
    OK = "ok"
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """A step an earlier attempt of this turn left. `result` is JSON text, "" while there is none.

    `joined` are the inputs that an input step took in.
    """

    n: int
    kind: StepKind
    call_id: str
    server: str
    tool: str
    tool_def_sha: str
    arguments: CanonicalJson | None
    repeatable: bool
    state: StepState
    result: str
    question: QuestionId | None = None
    joined: tuple[InboundId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to work on a conversation until another claim raises its fence.

    `inputs` are the messages (or the one command) this turn answers, in order. A new turn takes
    the oldest input and the messages of the same sender and session that directly follow it,
    unless one of them stands alone. `model` is the one chosen for the session, "" for none.
    """

    conversation: ConversationId
    place: Place
    session: SessionId
    fence: int
    turn: TurnId
    requester: Actor
    inputs: tuple[StoredInbound, ...]
    steps: tuple[StoredStep, ...]
    rounds: int
    attempts: int
    resumed: bool
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What people said last in a session and an earlier turn answered; `replies` came after it.

    Messages that a summary stands for, or that were taken out of the history, are no part of it.
    """

    inputs: tuple[StoredInbound, ...]
    replies: tuple[MessageId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A tool call about to be worked on; `n` rises by one over all steps of the turn."""

    n: int
    call_id: str
    server: str
    tool: str
    tool_def_sha: str
    arguments: CanonicalJson
    args_sha: str
    repeatable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RepliedStep:
    """A model's answer: `result` is JSON text of it."""

    n: int
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SentStep:
    """About to be called; `question` is the approval it uses up.

    `again` sends a repeatable step that was out before a crash once more.
    """

    n: int
    question: QuestionId | None = None
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneStep:
    """How a tool step ended; `result` is JSON text, capped by the caller."""

    n: int
    state: StepState
    result: str
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSteps:
    """Any mix, in one commit: `replied`, then `planned`, `sent`, `done`.

    `join` is the step under which waiting messages that continue the turn are taken into it;
    without any there is no such step.
    """

    turn: TurnId
    fence: int
    rounds: int
    waiting: bool = False
    replied: tuple[RepliedStep, ...] = ()
    planned: tuple[PlannedStep, ...] = ()
    sent: tuple[SentStep, ...] = ()
    done: tuple[DoneStep, ...] = ()
    join: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """`arguments` of each sent step, as its row (gated: its question's row) holds them: these run.

    `joined` are the messages that were taken into the turn.
    """

    arguments: Mapping[int, CanonicalJson]
    joined: tuple[StoredInbound, ...] = ()


class TurnEnd(StrEnum):
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Purpose(StrEnum):
    """What tokens were spent on."""

    TURN = "turn"
    SUMMARY = "summary"
    SAMPLING = "sampling"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    """One row of the books: who used which model for what."""

    purpose: Purpose
    model: str
    usage: Usage
    ms: int
    server: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTurn:
    """End a turn: reply, deliveries, event and books together, or nothing.

    `reply` "" stores no message; `replied` is the model step that gave the reply, if one did.
    `hides` are messages of its session that the model is told no more; they stay readable.
    What waits behind it begins no earlier than `not_before`.
    """

    conversation: ConversationId
    turn: TurnId
    fence: int
    end: TurnEnd
    reply: str
    parts: tuple[Part, ...]
    replied: tuple[RepliedStep, ...] = ()
    usage: tuple[UsageRecord, ...] = ()
    error: str = ""
    not_before: datetime | None = None
    hides: tuple[MessageId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """`more`: further input of the conversation waits."""

    message: MessageId | None
    cursor: Cursor | None
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Give a claim back without ending its turn."""

    conversation: ConversationId
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """Let a session's model history start at `first`, with `summary` standing for what was before."""

    session: SessionId
    first: MessageId
    summary: str
    usage: tuple[UsageRecord, ...] = ()
