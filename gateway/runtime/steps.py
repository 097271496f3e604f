"""The steps of a turn as values, and as the rows they are written to and read from. Pure."""

import dataclasses
from dataclasses import dataclass
from typing import Final, assert_never

from gateway.domain.canonical import CanonicalJson, sha256_of
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.turns import Claim, DoneStep, PlannedStep, StepKind, StepState
from gateway.domain.text import shorten
from gateway.domain.tools import CallState
from gateway.runtime.journal_text import (
    Answer,
    TimedReply,
    answer_from_json,
    answer_to_json,
    bounded,
    reply_from_json,
)

MAX_ERROR_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A step to be written; with an `answer` it is done as soon as it is planned."""

    call_id: str
    server: str
    tool: str
    tool_def_sha: str
    arguments: CanonicalJson
    repeatable: bool
    answer: Answer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One tool step as its row says; `answer` is None while it is open."""

    n: int
    call_id: str
    server: str
    tool: str
    tool_def_sha: str
    arguments: CanonicalJson
    repeatable: bool
    state: StepState
    answer: Answer | None = None

    @property
    def is_open(self) -> bool:
        """True while it still has to be worked on."""
        return self.state in {StepState.PLANNED, StepState.SENT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One recorded model reply and the steps its calls became.

    `joined` are the messages that joined the turn right before it.
    """

    n: int
    reply: TimedReply
    steps: tuple[Step, ...] = ()
    joined: tuple[StoredInbound, ...] = ()


def rounds_of(claim: Claim) -> tuple[list[Round], tuple[StoredInbound, ...]]:
    """Return the recorded rounds of a claimed turn, and what joined it after the last of them."""
    rounds: list[Round] = []
    joined: tuple[StoredInbound, ...] = ()
    for row in sorted(claim.steps, key=lambda step: step.n):
        match row.kind:
            case StepKind.MODEL:
                rounds.append(Round(n=row.n, reply=reply_from_json(row.result), joined=joined))
                joined = ()
            case StepKind.TOOL:
                step = Step(
                    n=row.n,
                    call_id=row.call_id,
                    server=row.server,
                    tool=row.tool,
                    tool_def_sha=row.tool_def_sha,
                    arguments=row.arguments or CanonicalJson("{}"),
                    repeatable=row.repeatable,
                    state=row.state,
                    answer=_answer_of(row.state, row.result),
                )
                last = rounds[-1]
                rounds[-1] = dataclasses.replace(last, steps=(*last.steps, step))
            case StepKind.INPUT:
                joined += tuple(item for item in claim.inputs if item.id in row.joined)
            case _:
                assert_never(row.kind)
    return rounds, joined


def _answer_of(state: StepState, result: str) -> Answer | None:
    if result:
        return answer_from_json(result)
    return INTERRUPTED if state is StepState.UNKNOWN else None


INTERRUPTED: Final = Answer(
    state=CallState.UNKNOWN,
    text=(
        "The call was interrupted before its result arrived, and its outcome is unknown: "
        "it may have run. It was not repeated. Check before you call it again."
    ),
)


def step_of(n: int, plan: Plan) -> Step:
    """Return the step a plan becomes."""
    answer = None if plan.answer is None else bounded(plan.answer)
    return Step(
        n=n,
        call_id=plan.call_id,
        server=plan.server,
        tool=plan.tool,
        tool_def_sha=plan.tool_def_sha,
        arguments=plan.arguments,
        repeatable=plan.repeatable,
        state=step_state(answer.state) if answer else StepState.PLANNED,
        answer=answer,
    )


def planned_row(step: Step) -> PlannedStep:
    """Return the row of a planned step."""
    return PlannedStep(
        n=step.n,
        call_id=step.call_id,
        server=step.server,
        tool=step.tool,
        tool_def_sha=step.tool_def_sha,
        arguments=step.arguments,
        args_sha=sha256_of(step.arguments),
        repeatable=step.repeatable,
    )


def closed(step: Step, answer: Answer) -> Step:
    """Return a step that ended with an answer."""
    return dataclasses.replace(step, state=step_state(answer.state), answer=answer)


def done_row(n: int, answer: Answer) -> DoneStep:
    """Return what a step's row says at its end."""
    failed = answer.state is not CallState.OK
    return DoneStep(
        n=n,
        state=step_state(answer.state),
        result=answer_to_json(answer),
        error=first_line(answer.text) if failed else "",
    )


def step_state(state: CallState) -> StepState:
    """Return how a step ends with a result of that state."""
    match state:
        case CallState.OK:
            return StepState.OK
        case CallState.ERROR | CallState.REFUSED:
            return StepState.ERROR
        case CallState.UNKNOWN:
            return StepState.UNKNOWN
        case _:
            assert_never(state)


def first_line(text: str) -> str:
    """Return the first line that says something, bounded."""
    lines = (line.strip() for line in text.splitlines())
    return shorten(next((line for line in lines if line), ""), MAX_ERROR_CHARACTERS)
