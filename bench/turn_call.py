"""A tool call inside a turn against the same call between two bare journal commits.

The servers are an object in the process, so what is left is the turn's work around the call; the
cost of the host itself is `bench.host_call`.
"""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.chats import TEXT, chatting
from bench.report import emit, median, percentile
from gateway.domain.canonical import CanonicalJson, canonical, sha256_of
from gateway.domain.form import FormAction, FormAnswer
from gateway.domain.ids import QuestionId
from gateway.domain.operations.inbound import Accept, Lane
from gateway.domain.operations.turns import (
    Claim,
    DoneStep,
    PlannedStep,
    RecordSteps,
    SentStep,
    StepState,
)
from gateway.domain.tools import ToolCall, ToolSpec
from gateway.ports import Approval, Approver, FormRequest, SamplingRequest, Store
from gateway.runtime.clock import SystemClock
from store import open_store
from tests.fakes.loopback import chat, message
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.tools import FakeTools, tool

ROUNDS: Final = 12
TURNS: Final = 4
CALLS: Final = 20
"""Of one turn, one after another; the first is not timed."""
MAX_RATIO: Final = 1.25
"""What the noise of two measurements of the same work may come to."""

ARGUMENTS: Final = canonical({"text": TEXT})


class Times:
    """When each run of the tool began."""

    def __init__(self) -> None:
        self._last: float | None = None
        self.taken: list[float] = []

    def new_turn(self) -> None:
        self._last = None

    async def run(self, arguments: CanonicalJson, approver: Approver) -> str:
        del arguments, approver
        now = time.perf_counter()
        if self._last is not None:
            # From run to run: one result written down, the next call written down and made.
            self.taken.append((now - self._last) * 1000)
        self._last = now
        return TEXT


def _tools(times: Times) -> tuple[FakeTools, ToolSpec]:
    tools = FakeTools()
    return tools, tools.add(tool("echo", read_only=True), times.run)


async def inside(times: Times, *, turns: int) -> None:
    """Run turns whose model asks for `CALLS` calls in one reply."""
    tools, spec = _tools(times)
    batch = [{"name": spec.alias, "arguments": {"text": TEXT}}] * CALLS
    script = [calls(("tool_call", {"calls": batch})), says("done")] * turns
    async with chatting(ScriptedModel(script), tools=tools) as chats:
        for n in range(turns):
            times.new_turn()
            await chats.turn(chat(n + 1))


class Journaling:
    """Implements `Approver` for the floor: a commit before the call, and nothing else."""

    def __init__(self, store: Store, claim: Claim, n: int) -> None:
        self._store = store
        self._claim = claim
        self._n = n

    async def approve(self, spec: ToolSpec) -> Approval:
        return Approval(allowed=False, reason=f"{spec.alias} must not ask here")

    async def started(self, question: QuestionId | None) -> CanonicalJson:
        sent = SentStep(n=self._n, question=question)
        recorded = await self._store.record_steps(_record(self._claim, sent=(sent,)))
        return recorded.arguments[self._n]

    async def elicit(self, request: FormRequest) -> FormAnswer:
        return FormAnswer(action=FormAction.DECLINE, reason=request.problem)

    async def sample(self, request: SamplingRequest) -> Approval:
        return Approval(allowed=False, reason=f"{request.server} must not ask for the model here")

    async def tell(self, text: str) -> None:
        raise AssertionError(f"nothing was to be told: {text}")


async def bare(times: Times, *, turns: int) -> None:
    """Make the same calls with the host, each between the two commits of the journal."""
    tools, spec = _tools(times)
    with tempfile.TemporaryDirectory() as home:
        async with open_store(Path(home) / "state.db", clock=SystemClock()) as opened:
            for n in range(turns):
                times.new_turn()
                await _bare_turn(opened.store, tools, spec, n + 1)


async def _bare_turn(store: Store, tools: FakeTools, spec: ToolSpec, number: int) -> None:
    event = message(TEXT, n=number, place=chat(number))
    await store.accept(Accept(event=event, lane=Lane.TURN))
    claim = await store.claim_turn(worker="bench")
    assert claim is not None
    planned = tuple(_planned(spec, n) for n in range(1, CALLS + 1))
    await store.record_steps(_record(claim, planned=planned))
    for n in range(1, CALLS + 1):
        call = ToolCall(
            id=f"{claim.turn}:{n}",
            alias=spec.alias,
            arguments=ARGUMENTS,
            place=claim.place,
            requester=claim.requester,
        )
        result = await tools.call(call, Journaling(store, claim, n))
        done = DoneStep(n=n, state=StepState.OK, result=canonical(result.text))
        await store.record_steps(_record(claim, done=(done,)))


def _planned(spec: ToolSpec, n: int) -> PlannedStep:
    return PlannedStep(
        n=n,
        call_id="c0",
        server=spec.server,
        tool=spec.name,
        tool_def_sha=spec.definition_sha,
        arguments=ARGUMENTS,
        args_sha=sha256_of(ARGUMENTS),
        repeatable=True,
    )


def _record(
    claim: Claim,
    *,
    planned: tuple[PlannedStep, ...] = (),
    sent: tuple[SentStep, ...] = (),
    done: tuple[DoneStep, ...] = (),
) -> RecordSteps:
    return RecordSteps(
        turn=claim.turn, fence=claim.fence, rounds=1, planned=planned, sent=sent, done=done
    )


def main() -> None:
    ours, floor = Times(), Times()
    # In short turns of both, so that they see the same machine.
    for _ in range(ROUNDS):
        asyncio.run(inside(ours, turns=TURNS))
        asyncio.run(bare(floor, turns=TURNS))
    ours_ms, floor_ms = median(ours.taken), median(floor.taken)
    emit(
        {
            "name": "turn_call",
            "unit": "ms",
            "ours": round(ours_ms, 3),
            "floor": round(floor_ms, 3),
            "floor_is": "the call between its two journal commits, nothing else",
            "ratio": round(ours_ms / floor_ms, 3),
            "p50_ms": round(ours_ms, 3),
            "p95_ms": round(percentile(ours.taken, 0.95), 3),
            "goal": f"no more, within {MAX_RATIO - 1:.0%} of noise",
            "met": ours_ms <= floor_ms * MAX_RATIO,
        }
    )


if __name__ == "__main__":
    main()
