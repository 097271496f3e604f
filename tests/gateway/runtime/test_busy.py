"""What arrives during a turn: it waits, ends the turn, or joins it, and is answered exactly once."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.domain.delivery import Delivery, Outcome
from gateway.domain.errors import StoreBusy
from gateway.domain.form import FieldKind, Form, FormField
from gateway.domain.ids import Actor, ConversationId, InboundId, Place, SessionId, TurnId
from gateway.domain.message import InboundEvent
from gateway.domain.model import AssistantSaid, FunctionAnswer, ModelReply, ModelRequest
from gateway.domain.operations.deliveries import ClaimDelivery, Enqueue, Enqueued, ParkChat
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.turns import Claim
from gateway.ports import Approver, FormRequest
from gateway.runtime.access import Access
from gateway.runtime.assignments import QUEUE_USAGE
from gateway.runtime.busy import QUEUED, Busy, Fate
from gateway.runtime.config import AccessConfig, BusyMode, GatewayConfig, PersonRole
from gateway.runtime.runtime import RuntimeConfig
from gateway.runtime.turn import INTERRUPTED
from gateway.runtime.wakeups import Wakeups
from tests.fakes.house import House, access, running
from tests.fakes.loopback import (
    ANNA,
    BEN,
    PLATFORM,
    Loopback,
    LoopbackRenderer,
    chat,
    command,
    message,
)
from tests.fakes.model import ScriptedModel, SlowModel, calls_tool, says
from tests.fakes.tools import FakeTools, tool
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ADD = "mcp__demo__add"
ENDS = "SELECT state FROM turn ORDER BY id"
OPEN = "SELECT count(*) FROM inbound WHERE state <> 'done'"
TAKEN = """
SELECT i.turn_id, m.body FROM inbound i JOIN message m ON m.id = i.message_id
ORDER BY i.turn_id, i.id
"""


def mode(mode: BusyMode) -> RuntimeConfig:
    return RuntimeConfig(gateway=GatewayConfig(busy_mode=mode))


QUEUE, INTERRUPT, STEER = mode(BusyMode.QUEUE), mode(BusyMode.INTERRUPT), mode(BusyMode.STEER)


class HeldTool:
    """A tool that answers when the test lets it."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.free = asyncio.Event()

    async def __call__(self, arguments: CanonicalJson, approver: Approver) -> str:
        self.started.set()
        await self.free.wait()
        return "added"


def held() -> tuple[FakeTools, HeldTool]:
    tools, run = FakeTools(), HeldTool()
    tools.add(tool("add"), run)
    return tools, run


async def never(request: ModelRequest) -> ModelReply:
    await asyncio.Event().wait()
    return says("never")


async def all_done(house: House) -> None:
    await eventually_async(lambda: house.rows(OPEN) == [(0,)])


def told(model: ScriptedModel, n: int) -> list[str]:
    """What request `n` told the model, oldest first."""
    return [item.text for item in model.requests[n].history]


# --- queue ------------------------------------------------------------------------------


@requirement("busy.queue_acknowledged", "fault.f28")
async def test_what_waits_is_acknowledged_once_in_each_turn_and_then_answered(
    tmp_path: Path,
) -> None:
    model = SlowModel()

    async with running(tmp_path, model, config=QUEUE) as house:
        await house.say("m1")
        await model.asked.acquire()
        for text in ("m2", "m3"):
            await house.say(text)
        assert await house.replies(1) == [QUEUED]
        model.gate.release()
        await model.asked.acquire()
        await house.say("m4")
        for _ in range(2):
            model.gate.release()
        assert await house.replies(5) == [QUEUED, "re m1", QUEUED, "re m3", "re m4"]

    assert told(model, 1) == ["m1", "re m1", "m2", "m3"]


class Marks:
    """Implements `Reacting`; a message is marked once the test lets it be."""

    def __init__(self, *, works: bool = True) -> None:
        self.marked: list[str] = []
        self.gate = asyncio.Event()
        self._works = works

    async def show_waiting(self, place: Place, native_id: str) -> bool:
        await self.gate.wait()
        self.marked.append(native_id)
        return self._works


@requirement("busy.queue_acknowledged")
async def test_where_messages_can_be_marked_each_that_waits_is_and_nothing_is_said(
    tmp_path: Path,
) -> None:
    model, marks = SlowModel(), Marks()

    async with running(tmp_path, model, config=QUEUE, reacting=marks) as house:
        await house.say("m1")
        await model.asked.acquire()
        for text in ("m2", "m3"):
            await house.say(text)
        # Both are taken in although the platform has not answered yet.
        assert marks.marked == []
        marks.gate.set()
        await eventually_async(lambda: len(marks.marked) == 2)
        for _ in range(2):
            model.gate.release()
        assert await house.replies(2) == ["re m1", "re m3"]

    assert set(marks.marked) == {"n1", "n2"}


async def test_where_a_message_cannot_be_marked_after_all_it_is_said_once(tmp_path: Path) -> None:
    model, marks = SlowModel(), Marks(works=False)
    marks.gate.set()

    async with running(tmp_path, model, config=QUEUE, reacting=marks) as house:
        await house.say("m1")
        await model.asked.acquire()
        for text in ("m2", "m3"):
            await house.say(text)
        await eventually_async(lambda: len(marks.marked) == 2)
        assert await house.replies(1) == [QUEUED]
        for _ in range(2):
            model.gate.release()
        assert await house.replies(3) == [QUEUED, "re m1", "re m3"]


async def test_a_message_whose_turn_starts_at_once_is_not_acknowledged(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(), config=QUEUE) as house:
        for n in range(3):
            await house.say(f"m{n}")
            await house.replies(n + 1)
        assert house.adapter.texts() == ["echo: m0", "echo: m1", "echo: m2"]


async def test_other_conversations_are_not_busy(tmp_path: Path) -> None:
    model = SlowModel()

    async with running(tmp_path, model, config=QUEUE) as house:
        await house.say("m1", place=chat(1))
        await model.asked.acquire()
        await house.say("m2", place=chat(2))
        await model.asked.acquire()
        for _ in range(2):
            model.gate.release()
        assert await house.replies(1, place=chat(2)) == ["re m2"]
        assert await house.replies(1, place=chat(1)) == ["re m1"]


@pytest.mark.parametrize("config", [QUEUE, INTERRUPT], ids=["queue", "interrupt"])
async def test_what_a_turn_began_with_does_not_count_as_an_arrival(
    tmp_path: Path, config: RuntimeConfig
) -> None:
    model = SlowModel()

    async with running(tmp_path, model, config=config) as house:
        await house.say("m1")
        await model.asked.acquire()
        [(inbound,)] = house.rows("SELECT id FROM inbound")
        await house.runtime.workers.arrived(message("m1", n=0), inbound=InboundId(inbound))
        model.gate.release()
        assert await house.replies(1) == ["re m1"]


async def test_it_is_not_said_again_after_a_crash(tmp_path: Path) -> None:
    adapter = Loopback()
    slow = SlowModel()
    async with running(tmp_path, slow, config=QUEUE, adapter=adapter, crash=True) as house:
        await house.say("m1")
        await slow.asked.acquire()
        await house.say("m2")
        await house.replies(1)

    again = SlowModel()
    async with running(tmp_path, again, config=QUEUE, adapter=adapter, first=10) as house:
        await again.asked.acquire()
        await house.say("m3")
        for _ in range(2):
            again.gate.release()
        assert await house.replies(3) == [QUEUED, "re m1", "re m3"]
        await all_done(house)

    assert told(again, 1) == ["m1", "re m1", "m2", "m3"]


class Locked:
    """Implements `DeliveryStore` while nothing can be written."""

    async def enqueue(self, enqueue: Enqueue) -> Enqueued:
        raise StoreBusy("locked")

    async def claim_delivery(self, claim: ClaimDelivery) -> Delivery | None:
        raise StoreBusy("locked")

    async def mark_delivery(self, outcome: Outcome) -> None:
        raise StoreBusy("locked")

    async def park_chat(self, park: ParkChat) -> None:
        raise StoreBusy("locked")


async def test_a_busy_store_costs_the_note_and_not_the_message() -> None:
    await _busy(BusyMode.QUEUE).say_it_waits(_claim(message("m1", n=1)))


# --- interrupt ----------------------------------------------------------------------------


@requirement("busy.interrupt")
async def test_a_new_message_ends_the_running_turn_and_starts_the_next(tmp_path: Path) -> None:
    model = SlowModel()

    async with running(tmp_path, model, config=INTERRUPT) as house:
        await house.say("m1")
        await model.asked.acquire()
        await house.say("m2")
        await model.asked.acquire()
        model.gate.release()
        assert await house.replies(2) == [INTERRUPTED, "re m2"]
        assert house.rows(ENDS) == [("cancelled",), ("done",)]
        assert house.rows(TAKEN) == [(1, "m1"), (2, "m2")]

    assert model.most == 1
    assert told(model, 1) == ["m1", INTERRUPTED, "m2"]


@requirement("busy.none_lost", "fault.f28")
async def test_many_messages_that_interrupt_are_each_taken_by_one_turn(tmp_path: Path) -> None:
    model = SlowModel()

    async with running(tmp_path, model, config=INTERRUPT) as house:
        async with asyncio.TaskGroup() as tasks:
            for n in range(8):
                tasks.create_task(house.say(f"m{n}"), name=f"m{n}")
        for _ in range(8):
            model.gate.release()
        await all_done(house)
        assert [body for _, body in house.rows(TAKEN)] == [f"m{n}" for n in range(8)]
        assert house.rows(ENDS)[-1] == ("done",)

    assert model.most == 1


async def test_an_interrupted_turn_takes_its_questions_along(tmp_path: Path) -> None:
    async def asks(arguments: CanonicalJson, approver: Approver) -> str:
        form = Form(
            message="Which day?", fields=(FormField(name="d", kind=FieldKind.TEXT, label="Day"),)
        )
        request = FormRequest(server="demo", server_sha="", tool="ask", form=form)
        return (await approver.elicit(request)).action

    tools = FakeTools()
    tools.add(tool("add"), gated=True)
    tools.add(tool("ask"), asks)
    model = ScriptedModel([calls_tool(ADD), calls_tool("mcp__demo__ask"), says("fine")])

    async with running(tmp_path, model, tools=tools, config=INTERRUPT) as house:
        for n, text in enumerate(("add", "ask")):
            await house.say(text)
            await house.adapter.until(lambda n=n: len(house.adapter.cards()) > n)
        await house.say("never mind")
        assert await house.replies(3) == [INTERRUPTED, INTERRUPTED, "fine"]
        assert (
            house.rows("SELECT state, reason FROM question ORDER BY created_at")
            == [("cancelled", "a newer message came")] * 2
        )
        closed = [item.body for item in house.adapter.sent if item.kind == "edit"]

    assert [name for name, _ in tools.ran] == ["ask"]
    assert all("No longer waiting: a newer message came" in body for body in closed)


async def test_a_crash_between_a_message_and_its_interruption_loses_nothing(
    tmp_path: Path,
) -> None:
    tools, run = held()
    async with running(
        tmp_path, ScriptedModel([calls_tool(ADD)]), tools=tools, config=INTERRUPT, crash=True
    ) as house:
        await house.say("m1")
        await run.started.wait()
        await house.runtime.intake.emit(message("m2", n=9))

    model = ScriptedModel([says("one"), says("two")])
    async with running(tmp_path, model, tools=tools, config=INTERRUPT) as house:
        await all_done(house)
        assert house.rows("SELECT count(*) FROM turn") == [(2,)]
        assert [body for _, body in house.rows(TAKEN)] == ["m1", "m2"]
        await house.adapter.until(lambda: len(house.adapter.texts()) >= 1)

    assert len(tools.ran) == 1


# --- steer --------------------------------------------------------------------------------


@requirement("busy.steer", "fault.f28")
async def test_a_message_during_a_turn_is_told_in_its_next_round(tmp_path: Path) -> None:
    tools, run = held()
    model = ScriptedModel([calls_tool(ADD), says("both done"), says("later")])

    async with running(tmp_path, model, tools=tools, config=STEER) as house:
        await house.say("add")
        await run.started.wait()
        for text in ("and this", "and that"):
            await house.say(text)
        run.free.set()
        assert await house.replies(1) == ["both done"]
        assert house.rows(ENDS) == [("done",)]
        assert house.rows(OPEN) == [(0,)]
        await house.say("thanks")
        assert await house.replies(2) == ["both done", "later"]

    assert told(model, 1) == ["add", "", "added", "and this", "and that"]
    assert told(model, 2) == ["add", "and this", "and that", "both done", "thanks"]


async def test_a_message_that_comes_too_late_to_join_gets_the_next_turn(tmp_path: Path) -> None:
    model = SlowModel()

    async with running(tmp_path, model, config=STEER) as house:
        await house.say("m1")
        await model.asked.acquire()
        await house.say("m2")
        for _ in range(2):
            model.gate.release()
        assert await house.replies(2) == ["re m1", "re m2"]


async def test_what_joined_stays_where_it_came_when_the_turn_is_taken_up_again(
    tmp_path: Path,
) -> None:
    tools, run = held()
    first = ScriptedModel([calls_tool(ADD), never])
    async with running(tmp_path, first, tools=tools, config=STEER, crash=True) as house:
        await house.say("add")
        await run.started.wait()
        await house.say("and this")
        run.free.set()
        await eventually_async(lambda: len(first.requests) == 2)

    second = ScriptedModel([calls_tool(ADD), never])
    async with running(tmp_path, second, tools=tools, config=STEER, first=10, crash=True) as house:
        await eventually_async(lambda: len(second.requests) == 2)
        await house.say("lastly")

    third = ScriptedModel([says("done")])
    async with running(tmp_path, third, tools=tools, config=STEER) as house:
        assert await house.replies(1) == ["done"]
        assert house.rows(ENDS) == [("done",)]
        assert house.rows(OPEN) == [(0,)]

    assert told(second, 0) == ["add", "", "added", "and this"]
    assert told(third, 0) == ["add", "", "added", "and this", "", "added", "lastly"]
    assert len(tools.ran) == 2


async def test_a_message_that_could_not_join_before_a_crash_joins_after_it(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel([never]), config=STEER, crash=True) as house:
        await house.say("m1")
        await eventually_async(lambda: house.rows(ENDS) == [("running",)])
        await house.say("m2")

    model = ScriptedModel([never])
    async with running(tmp_path, model, config=STEER, crash=True) as house:
        await eventually_async(lambda: len(model.requests) == 1)
    assert told(model, 0) == ["m1", "m2"]

    model = ScriptedModel([says("both")])
    async with running(tmp_path, model, config=STEER) as house:
        assert await house.replies(1) == ["both"]
        assert house.rows(OPEN) == [(0,)]
    assert told(model, 0) == ["m1", "m2"]


async def test_another_person_waits_and_is_told_so(tmp_path: Path) -> None:
    tools, run = held()
    model = ScriptedModel([calls_tool(ADD), says("for Anna"), says("for Ben")])

    async with running(tmp_path, model, tools=tools, config=STEER) as house:
        await house.say("add")
        await run.started.wait()
        await house.say("me too", sender=BEN)
        await house.say("hurry", sender=ANNA)
        run.free.set()
        assert (await house.replies(4))[:3] == [QUEUED, "for Anna", "for Ben"]
        await all_done(house)
        assert house.rows(TAKEN) == [(1, "add"), (2, "me too"), (3, "hurry")]


# --- /queue ----------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [QUEUE, INTERRUPT, STEER], ids=["queue", "interrupt", "steer"])
async def test_queue_gives_a_text_a_turn_of_its_own(tmp_path: Path, config: RuntimeConfig) -> None:
    tools, run = held()
    model = ScriptedModel([calls_tool(ADD), says("one"), says("two"), says("three")])

    async with running(tmp_path, model, tools=tools, config=config) as house:
        await house.say("m1")
        await run.started.wait()
        await house.give("queue", "m2")
        await house.give("queue", "m3")
        run.free.set()
        assert await house.replies(4) == [QUEUED, "one", "two", "three"]
        assert house.rows(TAKEN) == [(1, "m1"), (2, "m2"), (3, "m3")]

    assert told(model, 3) == ["m1", "m2", "one", "two", "m3"]


async def test_queue_without_a_text_says_how_it_is_used(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel()) as house:
        await house.give("queue")
        assert await house.replies(1) == [QUEUE_USAGE]


async def test_nothing_joins_a_turn_that_stands_alone(tmp_path: Path) -> None:
    tools, run = held()
    model = ScriptedModel([calls_tool(ADD), says("alone"), says("next")])

    async with running(tmp_path, model, tools=tools, config=STEER) as house:
        await house.give("queue", "m1")
        await run.started.wait()
        await house.say("m2")
        run.free.set()
        assert await house.replies(3) == [QUEUED, "alone", "next"]

    assert [type(item) for item in model.requests[1].history[1:]] == [AssistantSaid, FunctionAnswer]


# --- the rule -----------------------------------------------------------------------------------

GUEST = Actor(platform=PLATFORM, id="g")


def _claim(event: InboundEvent) -> Claim:
    return Claim(
        conversation=ConversationId(1),
        place=chat(),
        session=SessionId(1),
        fence=1,
        turn=TurnId(1),
        requester=event.sender,
        inputs=(
            StoredInbound(
                id=InboundId(1),
                conversation=ConversationId(1),
                session=SessionId(1),
                event=event,
            ),
        ),
        steps=(),
        rounds=0,
        attempts=1,
        resumed=False,
    )


def _busy(mode: BusyMode, *, rules: Access | None = None) -> Busy:
    return Busy(
        store=Locked(),
        access=rules or access(),
        renderers={PLATFORM: LoopbackRenderer()},
        wakeups=Wakeups(),
        mode=mode,
    )


@pytest.mark.parametrize(
    ("mode", "running", "event", "fate"),
    [
        (BusyMode.QUEUE, message("a", n=1), message("b", n=2), Fate.WAITS),
        (BusyMode.INTERRUPT, message("a", n=1), message("b", n=2), Fate.INTERRUPTS),
        (BusyMode.INTERRUPT, message("a", n=1), message("b", n=2, sender=BEN), Fate.INTERRUPTS),
        (BusyMode.INTERRUPT, message("a", n=1), message("b", n=2, sender=GUEST), Fate.WAITS),
        (BusyMode.INTERRUPT, message("a", n=1, sender=GUEST), message("b", n=2), Fate.INTERRUPTS),
        (BusyMode.INTERRUPT, message("a", n=1), command("call", "x", n=2), Fate.WAITS),
        (BusyMode.STEER, message("a", n=1), message("b", n=2), Fate.JOINS),
        (BusyMode.STEER, message("a", n=1), message("b", n=2, sender=BEN), Fate.WAITS),
        (BusyMode.STEER, message("a", n=1), command("call", "x", n=2), Fate.WAITS),
        (BusyMode.STEER, command("call", "x", n=1), message("b", n=2), Fate.WAITS),
    ],
)
def test_what_becomes_of_what_arrives(
    mode: BusyMode, running: InboundEvent, event: InboundEvent, fate: Fate
) -> None:
    rules = Access(
        AccessConfig(roles={PersonRole.GUEST: frozenset({str(GUEST)})}),
        allowed={PLATFORM: frozenset({ANNA.id, BEN.id})},
    )
    assert _busy(mode, rules=rules).fate(event, _claim(running)) is fate
