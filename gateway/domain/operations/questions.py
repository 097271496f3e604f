"""Asking a person, and settling what was asked."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from gateway.domain.delivery import Part
from gateway.domain.form import FormState
from gateway.domain.ids import Actor, InboundId, QuestionId
from gateway.domain.question import Action, Button, Decision, Question, QuestionState, Surface


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Question, button tokens, card delivery and event together.

    `file` holds arguments too long for the card; the card follows it. `field` starts the
    step-by-step progress of a form ("" = review); None when there is no form to step through.
    """

    question: Question
    buttons: tuple[Button, ...]
    card: Part
    file: Part | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerField:
    """Take one field's answer (or its omission) and ask the next; decides nothing.

    `next` is the field asked next ("" = review); `card` and `buttons` put it to the person.
    `others` and `left_out` are what a native form answered along with it, and what it left out.
    `token` is the button that was used, `inbound` the event that is done with it.
    """

    question: QuestionId
    rev: int
    field: str
    next: str
    card: Part
    buttons: tuple[Button, ...] = ()
    value: object = None
    skip: bool = False
    keep: bool = False
    """Only move to `next`; the answers stay as they are (*Edit*)."""
    others: Mapping[str, object] = dataclasses.field(default_factory=dict[str, object])
    left_out: frozenset[str] = frozenset()
    token: str | None = None
    actor: Actor | None = None
    inbound: InboundId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """An older card was used; `state` is how far the form really is."""

    state: FormState


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide:
    """Made by someone already judged to be allowed to; the row judges whether it is still open.

    `edit` replaces the card when this settles the question. `inbound` is done with it.
    """

    question: QuestionId
    actor: Actor
    surface: Surface
    action: Action
    to: QuestionState
    args_sha: str
    content: Mapping[str, object] | None = None
    reason: str = ""
    token: str | None = None
    edit: Part | None = None
    inbound: InboundId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The vote counts, but more are needed."""

    votes_needed: int


class Why(StrEnum):
    """Why an attempt changed nothing."""

    UNKNOWN = "unknown"
    LATE = "late"
    EXPIRED = "expired"
    CHANGED = "changed"
    NOT_OFFERED = "not_offered"
    REPEATED = "repeated"
    NOT_ALLOWED = "not_allowed"
    NOT_SHOWN = "not_shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing changed; `question` is the row as it is, None when there is none."""

    why: Why
    question: Question | None = None


Ruling: TypeAlias = Settled | Counted | Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseAttempt:
    """Note an attempt that was not allowed; changes nothing else."""

    question: QuestionId
    actor: Actor
    surface: Surface
    action: Action
    why: Why
    inbound: InboundId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """Cancel what is still pending among `questions`, each with the edit of its card."""

    questions: Mapping[QuestionId, Part | None]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireDue:
    """Expire what is pending and due among `questions`, each with the edit of its card."""

    questions: Mapping[QuestionId, Part | None]
