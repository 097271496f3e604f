"""The journal of one turn: what was recorded, and writing what happens next. Decides nothing."""

import dataclasses
from collections.abc import Sequence

from gateway.domain.canonical import CanonicalJson
from gateway.domain.ids import QuestionId
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.turns import (
    Claim,
    DoneStep,
    PlannedStep,
    Purpose,
    Recorded,
    RecordSteps,
    RepliedStep,
    SentStep,
    StepState,
    UsageRecord,
)
from gateway.ports import Clock, TurnStore
from gateway.runtime.journal_text import Answer, TimedReply, bounded, reply_to_json
from gateway.runtime.persist import persist
from gateway.runtime.steps import (
    Plan,
    Round,
    Step,
    closed,
    done_row,
    planned_row,
    rounds_of,
    step_of,
)


class Journal:
    """The recorded rounds of a claimed turn.

    Every method that writes may raise `Fenced`: then the turn belongs to somebody else.
    """

    def __init__(self, store: TurnStore, claim: Claim, *, clock: Clock) -> None:
        self._store = store
        self._claim = claim
        self._clock = clock
        self._used = claim.rounds
        self._rounds, self._joined = rounds_of(claim)
        self._next = max((step.n for step in claim.steps), default=0) + 1

    @property
    def rounds(self) -> tuple[Round, ...]:
        return tuple(self._rounds)

    @property
    def joined(self) -> tuple[StoredInbound, ...]:
        """What joined the turn since the last recorded reply."""
        return self._joined

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
        steps = tuple(step_of(first + 1 + i, plan) for i, plan in enumerate(plans))
        await self._record(
            replied=(RepliedStep(n=first, result=reply_to_json(reply)),),
            planned=tuple(planned_row(step) for step in steps),
            done=tuple(done_row(step.n, step.answer) for step in steps if step.answer),
        )
        self._next = first + 1 + len(steps)
        self._rounds.append(Round(n=first, reply=reply, steps=steps, joined=self._joined))
        self._joined = ()

    async def join(self) -> None:
        """Take what waits and continues the turn into it; the next request shows it."""
        recorded = await self._record(join=self._next)
        if recorded.joined:
            self._next += 1
            self._joined += recorded.joined

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
        return recorded.arguments[step.n]

    async def done(self, step: Step, answer: Answer) -> None:
        """Record how a step ended."""
        answer = bounded(answer)
        await self._record(done=(done_row(step.n, answer),))
        self._replace(closed(step, answer))

    async def _record(
        self,
        *,
        replied: tuple[RepliedStep, ...] = (),
        planned: tuple[PlannedStep, ...] = (),
        sent: tuple[SentStep, ...] = (),
        done: tuple[DoneStep, ...] = (),
        join: int | None = None,
    ) -> Recorded:
        steps = RecordSteps(
            turn=self._claim.turn,
            fence=self._claim.fence,
            rounds=self._used,
            replied=replied,
            planned=planned,
            sent=sent,
            done=done,
            join=join,
        )
        return await persist(lambda: self._store.record_steps(steps), clock=self._clock)

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
