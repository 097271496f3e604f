"""Recording a turn's steps: a tool runs only from a row that says so, with the row's arguments."""

from gateway.domain.canonical import CanonicalJson
from gateway.domain.errors import Conflict, Fenced
from gateway.domain.ids import TurnId
from gateway.domain.operations.turns import (
    DoneStep,
    PlannedStep,
    Recorded,
    RecordSteps,
    SentStep,
    StepKind,
)
from store.codec import clean, storable
from store.operations.inputs import join
from store.operations.turns import add_reply_step
from store.sql import turns as sql
from store.work import Work


def record_steps(work: Work, steps: RecordSteps) -> Recorded:
    """Write what was answered, planned, is about to be called, and came back.

    Raises:
        Fenced: Another worker holds the conversation.
        Conflict: A step is not as expected, or an approval does not cover it.
    """
    guard = {
        "turn": steps.turn,
        "fence": steps.fence,
        "rounds": steps.rounds,
        "state": "waiting" if steps.waiting else "running",
    }
    if work.one(sql.GUARD, guard) is None:
        raise Fenced(steps.turn, steps.fence)
    for reply in steps.replied:
        add_reply_step(work, turn=steps.turn, n=reply.n, result=reply.result)
    for planned in steps.planned:
        _plan(work, steps.turn, planned)
    arguments = {sent.n: _send(work, steps.turn, sent) for sent in steps.sent}
    for done in steps.done:
        _finish(work, steps.turn, done)
    joined = () if steps.join is None else join(work, steps.turn, steps.join)
    return Recorded(arguments=arguments, joined=joined)


def _plan(work: Work, turn: TurnId, step: PlannedStep) -> None:
    values: dict[str, object] = {
        "turn": turn,
        "n": step.n,
        "idem_key": f"{turn}:{step.n}",
        "call_id": storable(step.call_id),
        "server": storable(step.server),
        "tool": storable(step.tool),
        "def_sha": step.tool_def_sha,
        "args": storable(step.arguments),
        "args_sha": step.args_sha,
        "repeatable": step.repeatable,
        "now": work.now,
    }
    if work.run(sql.PLAN, values):
        return
    row = work.one(sql.STEP, values)
    same = row is not None and (
        row["kind"],
        row["call_id"],
        row["args_sha"],
        row["tool_def_sha"],
    ) == (
        StepKind.TOOL,
        values["call_id"],
        step.args_sha,
        step.tool_def_sha,
    )
    if not same:
        raise _taken(turn, step.n)


def _send(work: Work, turn: TurnId, step: SentStep) -> CanonicalJson:
    values: dict[str, object] = {
        "turn": turn,
        "n": step.n,
        "again": step.again,
        "now": work.now,
    }
    row = work.one(sql.SENT, values)
    if row is None:
        raise Conflict(f"step {step.n} of turn {turn} may not be sent")
    if step.question is None:
        return CanonicalJson(clean(row["args"] or ""))
    values.update(question=step.question, args_sha=row["args_sha"], def_sha=row["tool_def_sha"])
    approved = work.one(sql.CONSUME, values)
    if approved is None:
        raise Conflict(f"question {step.question} does not cover step {step.n} of turn {turn}")
    return CanonicalJson(clean(approved["args"] or ""))


def _finish(work: Work, turn: TurnId, step: DoneStep) -> None:
    values: dict[str, object] = {
        "turn": turn,
        "n": step.n,
        "state": step.state.value,
        "result": storable(step.result),
        "error": storable(step.error) or None,
        "now": work.now,
    }
    if work.run(sql.DONE, values):
        return
    row = work.one(sql.STEP, values)
    if row is None or (row["state"], row["result"]) != (step.state.value, values["result"]):
        raise _taken(turn, step.n)


def _taken(turn: TurnId, n: int) -> Conflict:
    return Conflict(f"step {n} of turn {turn} is another one or has ended")
