"""The steps of one turn: what its rows say, and writing the next ones. Decides nothing about them."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from gateway.domain.canonical import CanonicalJson, sha256_of
from gateway.domain.ids import QuestionId
from gateway.domain.operations.turns import (
    Claim,
    DoneStep,
    PlannedStep,
    Purpose,
    RecordSteps,
    RepliedStep,
    SentStep,
    StepKind,
    StepState,
    UsageRecord,
)
from gateway.domain.text import shorten
from gateway.domain.tools import CallState
from gateway.ports import Clock, TurnStore
from gateway.runtime.journal_text import (
    Answer,
    TimedReply,
    answer_from_json,
    answer_to_json,
    reply_from_json,
    reply_to_json,
)
from gateway.runtime.persist import persist

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
    """One recorded model reply and the steps its calls became."""

    n: int
    reply: TimedReply
    steps: tuple[Step, ...] = ()


class Journal:
    """The recorded rounds of a claimed turn.

    Every method that writes may raise `Fenced`: then the turn belongs to somebody else.
    """

    def __init__(self, store: TurnStore, claim: Claim, *, clock: Clock) -> None:
        self._store = store
        self._claim = claim
        self._clock = clock
        self._used = claim.rounds
        self._rounds = _rounds_of(claim)
        self._next = max((step.n for step in claim.steps), default=0) + 1

    @property
    def rounds(self) -> tuple[Round, ...]:
        return tuple(self._rounds)

    @property
    def used_rounds(self) -> int:
        """How many times a model was asked in this turn, lost attempts not counted."""
        return self._used

    def count_round(self) -> None:
        """Count one more request; it is written down with the next record."""
        self._used += 1

    def open_steps(self) -> tuple[Step, ...]:
        """Return the steps that still have to be worked on, in order."""
        return tuple(step for item in self._rounds for step in item.steps if step.is_open)

    def usage(self) -> tuple[UsageRecord, ...]:
        """Return the books of the recorded replies."""
        return tuple(usage_of(item.reply) for item in self._rounds)

    def final(self, reply: TimedReply) -> RepliedStep:
        """Return the step of a reply that ends the turn; it is written with the turn's end."""
        return RepliedStep(n=self._next, result=reply_to_json(reply))

    async def replied(self, reply: TimedReply, plans: Sequence[Plan]) -> None:
        """Record a reply and the steps of its calls in one commit."""
        first = self._next
        steps = tuple(_step_of(first + 1 + i, plan) for i, plan in enumerate(plans))
        await self._record(
            replied=(RepliedStep(n=first, result=reply_to_json(reply)),),
            planned=tuple(_planned(step) for step in steps),
            done=tuple(_done(step.n, step.answer) for step in steps if step.answer),
        )
        self._next = first + 1 + len(steps)
        self._rounds.append(Round(n=first, reply=reply, steps=steps))

    async def sent(self, step: Step, question: QuestionId | None) -> CanonicalJson:
        """Record that a step goes out now; return the arguments that run.

        Raises:
            Conflict: The approval was used up or covers something else.
        """
        again = step.state is StepState.SENT
        recorded = await self._record(
            sent=(SentStep(n=step.n, question=question, again=again),),
        )
        self._replace(dataclasses.replace(step, state=StepState.SENT))
        return recorded[step.n]

    async def done(self, step: Step, answer: Answer) -> None:
        """Record how a step ended."""
        await self._record(done=(_done(step.n, answer),))
        self._replace(_closed(step, answer))

    async def _record(
        self,
        *,
        replied: tuple[RepliedStep, ...] = (),
        planned: tuple[PlannedStep, ...] = (),
        sent: tuple[SentStep, ...] = (),
        done: tuple[DoneStep, ...] = (),
    ) -> Mapping[int, CanonicalJson]:
        steps = RecordSteps(
            turn=self._claim.turn,
            fence=self._claim.fence,
            rounds=self._used,
            replied=replied,
            planned=planned,
            sent=sent,
            done=done,
        )
        recorded = await persist(lambda: self._store.record_steps(steps), clock=self._clock)
        return recorded.arguments

    def _replace(self, changed: Step) -> None:
        for i, item in enumerate(self._rounds):
            if any(step.n == changed.n for step in item.steps):
                steps = tuple(changed if step.n == changed.n else step for step in item.steps)
                self._rounds[i] = dataclasses.replace(item, steps=steps)


def usage_of(reply: TimedReply) -> UsageRecord:
    """Return the line of the books for one reply of a turn."""
    return UsageRecord(
        purpose=Purpose.TURN, model=reply.reply.model, usage=reply.reply.usage, ms=reply.ms
    )


def _rounds_of(claim: Claim) -> list[Round]:
    rounds: list[Round] = []
    for row in sorted(claim.steps, key=lambda step: step.n):
        match row.kind:
            case StepKind.MODEL:
                rounds.append(Round(n=row.n, reply=reply_from_json(row.result)))
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
                pass
            case _:
                assert_never(row.kind)
    return rounds


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


def _step_of(n: int, plan: Plan) -> Step:
    return Step(
        n=n,
        call_id=plan.call_id,
        server=plan.server,
        tool=plan.tool,
        tool_def_sha=plan.tool_def_sha,
        arguments=plan.arguments,
        repeatable=plan.repeatable,
        state=step_state(plan.answer.state) if plan.answer else StepState.PLANNED,
        answer=plan.answer,
    )


def _planned(step: Step) -> PlannedStep:
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


def _closed(step: Step, answer: Answer) -> Step:
    return dataclasses.replace(step, state=step_state(answer.state), answer=answer)


def _done(n: int, answer: Answer) -> DoneStep:
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
    lines: Iterable[str] = (line.strip() for line in text.splitlines())
    return shorten(next((line for line in lines if line), ""), MAX_ERROR_CHARACTERS)
