"""The invariants of the store, whatever happens in whatever order (facts of the design, numbered).

1 what was acknowledged is a row · 2 once per dedupe key, and a platform's cursor never passes what
is stored · 3 a turn ends in one piece under its fence, or not at all · 4 one open turn per
conversation · 5 a call goes out only from a step that says so, and is never repeated unasked ·
6 a question is decided once, and its approval runs once, with its arguments · 7 a delivery says
`sending` before the call, a sent one has its id · 8 event ids only rise · 9 nothing is deleted.
"""

import asyncio
import contextlib
import sqlite3
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gateway.domain.canonical import canonical, sha256_of
from gateway.domain.delivery import Dead, Delivery, Later, Receipt, Sent, Unsure
from gateway.domain.errors import Conflict, Fenced
from gateway.domain.ids import Actor, ChatType, ConversationId, Place
from gateway.domain.message import InboundMessage
from gateway.domain.operations.inbound import Accepted, Duplicate
from gateway.domain.operations.questions import Refused, Settled
from gateway.domain.operations.turns import Claim, DoneStep, Release, SentStep, StepState
from gateway.domain.question import Action, Question
from store import OpenStore, open_store
from tests.contracts import values
from tests.support.clock import ManualClock

T = TypeVar("T")

PLACES: Final = tuple(
    Place(platform="telegram", chat=f"{n}", chat_type=ChatType.DM) for n in range(3)
)
SENDERS: Final = (values.ANNA, values.BEN)
TABLES: Final = ("inbound", "message", "turn", "step", "question", "vote", "delivery", "event")
GATES: Final = ("later", "free", "asked", "denied", "allowed", "allowed")
MODEST: Final = settings(
    max_examples=30,
    stateful_step_count=60,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@cache
def _new_store() -> bytes:
    """The file of a fresh store; made once, since creating one takes longer than an example."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "state.db"

        async def create() -> None:
            async with open_store(path, clock=ManualClock()):
                pass

        asyncio.run(create())
        return path.read_bytes()


@dataclass(slots=True, kw_only=True)
class Working:
    """A claim, and what this machine knows of its steps."""

    claim: Claim
    states: dict[int, StepState] = field(default_factory=dict[int, StepState])
    questions: dict[int, Question] = field(default_factory=dict[int, Question])


class StoreMachine(RuleBasedStateMachine):
    """Drives one store as a gateway does, crashes it, and looks at its rows after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "state.db"
        self.path.write_bytes(_new_store())
        self.clock = ManualClock()
        self.stack = contextlib.AsyncExitStack()
        self.looker = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        self.acknowledged: dict[str, Accepted] = {}
        self.waiting: dict[Place, list[tuple[str, str]]] = {place: [] for place in PLACES}
        self.working: dict[ConversationId, Working] = {}
        self.zombies: list[Claim] = []
        self.ran: list[tuple[int, int, bool]] = []
        self.decided: dict[str, Settled] = {}
        self.open_questions: list[Question] = []
        self.sending: list[Delivery] = []
        self.uncertain: list[int] = []
        self.sent: dict[Place, list[int]] = {place: [] for place in PLACES}
        self.events: list[int] = [1]
        self.counts: dict[str, int] = dict.fromkeys(TABLES, 0)
        self.number = 0

    # --- the store -------------------------------------------------------------------

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @property
    def store(self) -> OpenStore:
        return self.opened

    @initialize()
    def open(self) -> None:
        opening = self.stack.enter_async_context(open_store(self.path, clock=self.clock))
        self.opened: OpenStore = self.do(opening)

    def teardown(self) -> None:
        self.do(self.stack.aclose())
        self.runner.close()
        self.looker.close()
        self.folder.cleanup()

    @precondition(lambda self: self.working or self.sending)
    @rule(resume=st.booleans())
    def crash(self, resume: bool) -> None:
        """The process ends with everything as it is; another one starts, perhaps goes on at once."""
        before = self.table_counts()
        self.do(self.stack.aclose())
        self.open()
        recovered = self.do(self.store.store.recover(worker="w"))
        assert self.table_counts() == before, "invariant 9"
        self.uncertain.extend(delivery.id for delivery in self.sending)
        assert sorted(recovered.deliveries) == sorted(self.uncertain), "invariant 7"
        self.zombies.extend(work.claim for work in self.working.values())
        self.working.clear()
        self.sending.clear()
        while resume and self.claim_one():
            pass

    # --- arriving ------------------------------------------------------------------------

    @rule(
        place=st.sampled_from(PLACES),
        senders=st.lists(st.sampled_from(SENDERS), min_size=1, max_size=3),
        seconds=st.sampled_from([0, 1, 30]),
    )
    def accept(self, place: Place, senders: list[Actor], seconds: int) -> None:
        self.clock.advance(seconds)
        for sender in senders:
            self.accept_one(place, sender)

    def accept_one(self, place: Place, sender: Actor) -> None:
        self.number += 1
        accept = values.message(
            f"{self.number}",
            place=place,
            sender=sender,
            native_id=f"{self.number}",
            position=("offset", f"{self.number}"),
        )
        accepted = self.do(self.store.store.accept(accept))
        assert isinstance(accepted, Accepted)
        self.acknowledged[accept.event.dedupe] = accepted
        self.waiting[place].append((f"{self.number}", str(sender)))

    @precondition(lambda self: self.acknowledged)
    @rule(data=st.data())
    def redeliver(self, data: st.DataObject) -> None:
        dedupe = data.draw(st.sampled_from(sorted(self.acknowledged)))
        again = values.message("again", place=PLACES[0], native_id="x", dedupe=dedupe)
        assert self.do(self.store.store.accept(again)) == Duplicate(dedupe=dedupe)

    # --- turns ---------------------------------------------------------------------------

    @precondition(lambda self: self.claimable())
    @rule()
    def claim(self) -> None:
        assert self.claim_one()

    def claimable(self) -> bool:
        busy = {work.claim.place for work in self.working.values()}
        places = {place for place, texts in self.waiting.items() if texts}
        places |= {zombie.place for zombie in self.open_zombies()}
        return not places <= busy

    def claim_one(self) -> bool:
        claim = self.do(self.store.store.claim_turn(worker="w"))
        if claim is None:
            assert not self.claimable()
            return False
        assert claim.conversation not in self.working, "invariant 4"
        steps = {step.n: step.state for step in claim.steps}
        if not claim.resumed:
            self.take_inputs(claim)
        asked = {
            question.step or 0: question
            for question in self.open_questions
            if question.turn == claim.turn
        }
        self.working[claim.conversation] = Working(claim=claim, states=steps, questions=asked)
        for step in claim.steps:
            assert step.state is not StepState.SENT or step.repeatable, "invariant 5"
        return True

    def open_zombies(self) -> list[Claim]:
        rows = self.looker.execute("SELECT id FROM turn WHERE state IN ('running', 'waiting')")
        still_open = {row[0] for row in rows}
        return [claim for claim in self.zombies if claim.turn in still_open]

    def take_inputs(self, claim: Claim) -> None:
        """A new turn takes the oldest input and those of its sender that directly follow."""
        queue = self.waiting[claim.place]
        count = 1
        while count < len(queue) and queue[count][1] == queue[0][1]:
            count += 1
        taken = [item.event.text for item in claim.inputs if isinstance(item.event, InboundMessage)]
        assert taken == [text for text, _ in queue[:count]]
        del queue[:count]

    def some_work(self, data: st.DataObject) -> Working:
        return self.working[data.draw(st.sampled_from(sorted(self.working)))]

    @precondition(lambda self: self.working)
    @rule(data=st.data(), repeatable=st.booleans(), gate=st.sampled_from(GATES))
    def plan(self, data: st.DataObject, repeatable: bool, gate: str) -> None:
        """Plan a call, perhaps ask and decide about it, perhaps send it."""
        work = self.some_work(data)
        n = self.plan_step(work, repeatable=repeatable)
        if gate == "free":
            self.send_step(work, n, again=False)
        elif gate != "later":
            question = self.ask_about(work, n)
            if gate != "asked":
                self.settle(question, Action.DENY if gate == "denied" else Action.ALLOW_ONCE)
                self.send_step(work, n, again=False)

    def plan_step(self, work: Working, *, repeatable: bool) -> int:
        n = len(work.states) + 1
        arguments = canonical({"n": n})
        step = values.planned(n, repeatable=repeatable, arguments=arguments)
        self.do(self.store.store.record_steps(values.record(work.claim, planned=(step,))))
        work.states[n] = StepState.PLANNED
        return n

    @precondition(lambda self: any(work.states for work in self.working.values()))
    @rule(data=st.data(), again=st.booleans())
    def send(self, data: st.DataObject, again: bool) -> None:
        work = self.some_work(data)
        if not work.states:
            return
        self.send_step(work, data.draw(st.sampled_from(sorted(work.states))), again=again)

    def send_step(self, work: Working, n: int, *, again: bool) -> None:
        asked = work.questions.get(n)
        step = SentStep(n=n, question=None if asked is None else asked.id, again=again)
        repeatable, was = self.looker.execute(
            "SELECT repeatable, state FROM step WHERE turn_id = ? AND n = ?", (work.claim.turn, n)
        ).fetchone()
        try:
            recorded = self.do(
                self.store.store.record_steps(values.record(work.claim, sent=(step,)))
            )
        except Conflict:
            approved = asked is None or self.is_allowed(asked)
            assert not approved or was != "planned", "a planned and approved step may be sent"
            return
        assert was == "planned" or (again and repeatable and was == "sent"), "invariant 5"
        assert asked is None or self.is_allowed(asked), "invariant 6"
        assert recorded.arguments == {n: canonical({"n": n})}, "invariant 6"
        work.states[n] = StepState.SENT
        self.ran.append((work.claim.turn, n, bool(repeatable)))

    def is_allowed(self, question: Question) -> bool:
        settled = self.decided.get(question.id)
        return settled is not None and settled.decision.state == "allowed"

    @precondition(lambda self: any(work.states for work in self.working.values()))
    @rule(data=st.data(), state=st.sampled_from([StepState.OK, StepState.ERROR]))
    def finish_step(self, data: st.DataObject, state: StepState) -> None:
        work = self.some_work(data)
        for n, was in work.states.items():
            if was in (StepState.PLANNED, StepState.SENT):
                done = DoneStep(n=n, state=state, result='"done"')
                self.do(self.store.store.record_steps(values.record(work.claim, done=(done,))))
                work.states[n] = state
                return

    @precondition(lambda self: self.working)
    @rule(
        data=st.data(),
        reply=st.sampled_from(["", "answer", "answer"]),
        deliveries=st.lists(st.booleans(), max_size=2),
    )
    def commit(self, data: st.DataObject, reply: str, deliveries: list[bool]) -> None:
        work = self.some_work(data)
        committed = self.do(self.store.store.commit_turn(values.commit(work.claim, reply)))
        assert committed.more == bool(self.waiting[work.claim.place])
        assert (committed.message is None) == (not reply)
        del self.working[work.claim.conversation]
        for through in deliveries:
            self.deliver(through=through)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        work = self.some_work(data)
        claim = work.claim
        self.do(
            self.store.store.release(Release(conversation=claim.conversation, fence=claim.fence))
        )
        del self.working[claim.conversation]
        self.zombies.append(claim)

    @precondition(lambda self: any(self.outdated()))
    @rule(data=st.data())
    def zombie(self, data: st.DataObject) -> None:
        """A worker that lost its conversation goes on as if nothing had happened."""
        claim = data.draw(st.sampled_from(self.outdated()))
        before = list(self.looker.iterdump())
        attempts: list[Callable[[], Coroutine[Any, Any, object]]] = [
            lambda: self.store.store.commit_turn(values.commit(claim, "zombie")),
            lambda: self.store.store.record_steps(
                values.record(claim, planned=(values.planned(99),))
            ),
        ]
        for attempt in attempts:
            with pytest.raises(Fenced):
                self.do(attempt())
        assert list(self.looker.iterdump()) == before, "invariant 3"

    def outdated(self) -> list[Claim]:
        return [
            zombie
            for zombie in self.zombies
            if (owner := self.working.get(zombie.conversation))
            and owner.claim.fence != zombie.fence
        ]

    # --- questions ---------------------------------------------------------------------------

    @precondition(lambda self: any(work.states for work in self.working.values()))
    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        work = self.some_work(data)
        free = [
            n
            for n, state in work.states.items()
            if state is StepState.PLANNED and n not in work.questions
        ]
        if free:
            self.ask_about(work, free[0])

    def ask_about(self, work: Working, n: int) -> Question:
        self.number += 1
        question = values.question(
            self.number,
            claim=work.claim,
            step=n,
            place=work.claim.place,
            expires_at=self.clock.now() + timedelta(seconds=60),
        )
        about = values.with_arguments(question, canonical({"n": n}))
        asked = self.do(self.store.store.ask(values.ask(about)))
        work.questions[n] = asked
        self.open_questions.append(asked)
        return asked

    @precondition(lambda self: self.open_questions)
    @rule(
        data=st.data(),
        action=st.sampled_from([Action.ALLOW_ONCE, Action.DENY]),
        honest=st.booleans(),
    )
    def decide(self, data: st.DataObject, action: Action, honest: bool) -> None:
        self.settle(data.draw(st.sampled_from(self.open_questions)), action, honest=honest)

    def settle(self, question: Question, action: Action, *, honest: bool = True) -> None:
        args_sha = question.args_sha if honest else sha256_of("other")
        ruling = self.do(
            self.store.store.decide(
                values.decide(question, action, args_sha=args_sha, closing=values.edit())
            )
        )
        if isinstance(ruling, Settled):
            assert question.id not in self.decided, "invariant 6"
            assert honest, "invariant 6"
            assert self.clock.now() < question.expires_at
            self.decided[question.id] = ruling
        else:
            assert isinstance(ruling, Refused)

    # --- deliveries ----------------------------------------------------------------------------

    @precondition(lambda self: self.rows("SELECT 1 FROM delivery WHERE state = 'ready'"))
    @rule(through=st.booleans())
    def claim_delivery(self, through: bool) -> None:
        """Take the next delivery; sometimes it goes through at once."""
        self.deliver(through=through)

    def deliver(self, *, through: bool) -> None:
        delivery = self.do(self.store.store.claim_delivery(values.sending()))
        if delivery is None:
            return
        (state,) = self.looker.execute(
            "SELECT state FROM delivery WHERE id = ?", (delivery.id,)
        ).fetchone()
        assert state == "sending", "invariant 7"
        if through:
            self.mark_sent(delivery.id)
        else:
            self.sending.append(delivery)

    @precondition(lambda self: self.sending)
    @rule(what=st.sampled_from([Sent, Later, Unsure, Dead]))
    def mark(self, what: type[Any]) -> None:
        delivery = self.sending.pop(0)
        if what is Sent:
            self.mark_sent(delivery.id)
        elif what is Later:
            at = self.clock.now()
            outcome = Later(id=delivery.id, at=at, error="slow", park_chat=False)
            self.do(self.store.store.mark_delivery(outcome))
        else:
            self.do(self.store.store.mark_delivery(what(id=delivery.id, error="lost")))
            if what is Unsure:
                self.uncertain.append(delivery.id)

    @precondition(lambda self: self.uncertain)
    @rule()
    def settle_uncertain(self) -> None:
        self.mark_sent(self.uncertain.pop(0))

    def mark_sent(self, delivery: Any) -> None:
        receipt = Receipt(native_id=f"native-{delivery}")
        self.do(self.store.store.mark_delivery(Sent(id=delivery, receipt=receipt)))
        place, order, kind = self.looker.execute(
            "SELECT c.chat_key, d.ord, d.kind FROM delivery d"
            " JOIN conversation c ON c.id = d.conversation_id WHERE d.id = ?",
            (delivery,),
        ).fetchone()
        if kind != "edit":
            self.sent[PLACES[int(place)]].append(order)

    # --- what must hold ----------------------------------------------------------------------------

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.looker.execute(sql).fetchall()

    def table_counts(self) -> dict[str, int]:
        # The table names are the ones above.
        counting = {name: f"SELECT count(*) FROM {name}" for name in TABLES}  # noqa: S608
        return {name: self.rows(sql)[0][0] for name, sql in counting.items()}

    @invariant()
    def acknowledged_is_stored_once(self) -> None:
        stored = dict(self.rows("SELECT dedupe, id FROM inbound"))
        assert {key: item.inbound for key, item in self.acknowledged.items()} == stored, "1, 2"
        messages = self.rows("SELECT count(*) FROM message WHERE role = 'user'")
        assert messages == [(len(self.acknowledged),)], "1, 2"
        for (value,) in self.rows("SELECT value FROM platform_cursor"):
            below = {f"telegram::{n}" for n in range(1, int(value) + 1)}
            assert {key for key in below if key in self.acknowledged} <= set(stored), "2"

    @invariant()
    def one_open_turn_and_whole_ends(self) -> None:
        open_turns = self.rows(
            "SELECT conversation_id FROM turn WHERE state IN ('running', 'waiting')"
        )
        assert len(open_turns) == len(set(open_turns)), "4"
        halves = self.rows(
            "SELECT t.id FROM turn t WHERE t.state = 'done' AND ("
            " EXISTS (SELECT 1 FROM inbound i WHERE i.turn_id = t.id AND i.state <> 'done')"
            " OR EXISTS (SELECT 1 FROM step s WHERE s.turn_id = t.id"
            "            AND s.state IN ('planned', 'sent'))"
            " OR (SELECT count(*) FROM message m WHERE m.turn_id = t.id)"
            "    <> (SELECT count(*) FROM delivery d WHERE d.turn_id = t.id))"
        )
        assert halves == [], "3"

    @invariant()
    def calls_run_once_as_approved(self) -> None:
        once = [(turn, n) for turn, n, repeatable in self.ran if not repeatable]
        assert len(once) == len(set(once)), "5"
        wrong = self.rows(
            "SELECT s.turn_id, s.n FROM step s JOIN question q ON q.id = s.question_id"
            " WHERE s.sent_at IS NOT NULL"
            " AND (q.state <> 'allowed' OR q.consumed_at IS NULL OR q.args <> s.args)"
        )
        assert wrong == [], "6"
        consumed = self.rows("SELECT count(*) FROM question WHERE consumed_at IS NOT NULL")
        sent = self.rows(
            "SELECT count(*) FROM step WHERE question_id IS NOT NULL AND sent_at IS NOT NULL"
        )
        assert consumed == sent, "6"

    @invariant()
    def deliveries_say_what_they_are(self) -> None:
        sending = {row[0] for row in self.rows("SELECT id FROM delivery WHERE state = 'sending'")}
        assert sending == {delivery.id for delivery in self.sending}, "7"
        assert self.rows("SELECT 1 FROM delivery WHERE state = 'sent' AND native_id IS NULL") == []
        overtaking = self.rows(
            "SELECT d.id FROM delivery d JOIN delivery p ON p.conversation_id = d.conversation_id"
            " AND p.ord < d.ord AND p.kind <> 'edit' AND p.state IN ('ready','sending','uncertain')"
            " WHERE d.state = 'sending' AND d.kind <> 'edit'"
        )
        assert overtaking == [], "order"
        for orders in self.sent.values():
            assert orders == sorted(orders), "order"

    @invariant()
    def events_rise_and_nothing_goes(self) -> None:
        events = [row[0] for row in self.rows("SELECT id FROM event ORDER BY id")]
        assert events[: len(self.events)] == self.events, "8"
        self.events = events
        counts = self.table_counts()
        assert all(counts[name] >= count for name, count in self.counts.items()), "9"
        self.counts = counts


def test_the_invariants_hold_in_any_order_of_work_and_crashes() -> None:
    run_state_machine_as_test(StoreMachine, settings=MODEST)
