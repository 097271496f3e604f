from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.domain.errors import StoreBusy
from gateway.domain.ids import Actor, InboundId
from gateway.domain.message import (
    CommandGiven,
    InboundEvent,
    InboundMessage,
    MessageDeleted,
    MessageEdited,
)
from gateway.domain.operations.inbound import Accept, Accepted, Duplicate, Lane, MigrateChat
from gateway.runtime.access import Access
from gateway.runtime.backlog import Backlog
from gateway.runtime.config import AccessConfig, PersonRole
from gateway.runtime.intake import Intake, lane_of
from gateway.runtime.refusals import Refusal, Refusals
from gateway.runtime.wakeups import Wakeups
from store import open_store
from tests.fakes.entrance import OpenGate, entrance
from tests.fakes.house import ADMIN, STRANGER, access, rows
from tests.fakes.loopback import ANNA, PLATFORM, chat, command, message, press
from tests.support.clock import NOON, ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

NOTHING_MISSED = Backlog(Wakeups(), ManualClock())


class NobodySignsIn:
    """Implements `Meaning`: no sign-in waits for anything."""

    def meant(self, event: InboundEvent) -> InboundEvent:
        return event


NOBODY_SIGNS_IN = NobodySignsIn()


@dataclass(slots=True)
class Rings(Wakeups):
    """Counts the rings of each lane."""

    rung: list[str]

    def turns(self) -> None:
        self.rung.append("turns")

    def controls(self) -> None:
        self.rung.append("controls")


@dataclass(slots=True)
class Heard:
    """Implements `Arrivals`: writes down what arrived."""

    events: list[InboundEvent] = field(default_factory=list[InboundEvent])

    async def arrived(self, event: InboundEvent, *, inbound: InboundId) -> None:
        self.events.append(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    intake: Intake
    rung: list[str]
    path: Path
    heard: "Heard"
    refusals: Refusals

    def count(self, table: str) -> int:
        # The names come from the tests below.
        return rows(self.path, f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608


@pytest.fixture
async def door(tmp_path: Path) -> AsyncGenerator[Door]:
    path = tmp_path / "state.db"
    rings = Rings([])
    clock = ManualClock()
    async with open_store(path, clock=clock) as opened:
        heard, rules = Heard(), access()
        gate = entrance(opened, rules, clock)
        intake = Intake(opened.store, rules, gate, rings, heard, NOTHING_MISSED, NOBODY_SIGNS_IN)
        yield Door(intake=intake, rung=rings.rung, path=path, heard=heard, refusals=gate.refusals)


async def test_a_message_is_stored_before_emit_returns_and_wakes_the_workers(door: Door) -> None:
    await door.intake.emit(message("hi", n=1))

    assert door.rung == ["turns"]
    assert (door.count("inbound"), door.count("message")) == (1, 1)


async def test_whoever_works_hears_of_every_input_of_the_turn_lane_once(door: Door) -> None:
    said, given = message("hi", n=1), command("call", "x {}", n=2)
    for event in (said, said, given, command("status", n=3)):
        await door.intake.emit(event)

    assert door.heard.events == [said, given]


async def test_queue_with_a_text_is_that_message_standing_alone(door: Door) -> None:
    await door.intake.emit(command("queue", " do this too ", n=1))

    (event,) = door.heard.events
    assert isinstance(event, InboundMessage)
    assert (event.text, event.alone, event.dedupe) == ("do this too", True, "loop::1")
    assert rows(door.path, "SELECT body FROM message") == [("do this too",)]


async def test_queue_without_a_text_or_of_somebody_who_may_not_stays_a_command(
    tmp_path: Path,
) -> None:
    guest = Actor(platform=PLATFORM, id="g")
    rules = Access(
        AccessConfig(roles={PersonRole.GUEST: frozenset({str(guest)})}),
        allowed={PLATFORM: frozenset({ANNA.id})},
    )
    heard = Heard()
    clock = ManualClock()
    async with open_store(tmp_path / "state.db", clock=clock) as opened:
        gate = entrance(opened, rules, clock)
        intake = Intake(
            opened.store, rules, gate, Wakeups(), heard, NOTHING_MISSED, NOBODY_SIGNS_IN
        )
        await intake.emit(command("queue", n=1))
        await intake.emit(command("queue", "sneak", n=2, sender=guest))

    assert [type(event) for event in heard.events] == [CommandGiven, CommandGiven]


@requirement("case.db13")
async def test_a_redelivered_message_is_one_row_and_wakes_nobody(door: Door) -> None:
    for _ in range(3):
        await door.intake.emit(message("hi", n=1))

    assert door.rung == ["turns"]
    assert (door.count("inbound"), door.count("message")) == (1, 1)


@requirement("access.refusals.never_body", "access.refusals.counted")
async def test_nothing_of_a_stranger_is_stored_and_the_log_holds_no_body(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    await door.intake.emit(message("my secret", n=1, sender=STRANGER))
    await door.intake.emit(command("new", "my secret", n=2, sender=STRANGER))

    assert door.rung == []
    assert (door.count("inbound"), door.count("conversation")) == (0, 0)
    assert door.refusals.counts == {("loop", Refusal.STRANGER): 2}
    assert "loop:666" in caplog.text
    assert "my secret" not in caplog.text


async def test_a_press_of_a_stranger_is_left_to_its_question(door: Door) -> None:
    await door.intake.emit(press("token", n=1, sender=STRANGER))

    assert door.rung == ["controls"]


async def test_new_opens_a_session_where_it_arrives(door: Door) -> None:
    await door.intake.emit(message("old", n=1))
    await door.intake.emit(command("new", n=2))
    await door.intake.emit(message("fresh", n=3))

    assert rows(door.path, "SELECT body, session_id FROM message ORDER BY id") == [
        ("old", 1),
        ("fresh", 2),
    ]


@pytest.mark.parametrize(
    ("event", "lane"),
    [
        (message("hi", n=1), Lane.TURN),
        (command("call", "x {}", n=1), Lane.TURN),
        (command("queue", n=1), Lane.TURN),
        (command("stop", n=1), Lane.CONTROL),
        (command("reload_mcp", n=1), Lane.CONTROL),
        (command("nonsense", n=1), Lane.CONTROL),
        (press("t", n=1), Lane.CONTROL),
        (
            MessageEdited(
                place=chat(),
                native_id="e",
                dedupe="e",
                sender=ANNA,
                sent_at=NOON,
                edited="n1",
                text="x",
            ),
            Lane.CONTROL,
        ),
        (
            MessageDeleted(
                place=chat(), native_id="d", dedupe="d", sender=ANNA, sent_at=NOON, deleted="n1"
            ),
            Lane.CONTROL,
        ),
    ],
)
def test_only_messages_and_calls_wait_behind_a_turn(event: InboundEvent, lane: Lane) -> None:
    assert lane_of(event) is lane


class BusyStore:
    """Implements `InboundStore` while nothing can be written."""

    async def accept(self, accept: Accept) -> Accepted | Duplicate:
        raise StoreBusy("locked")

    async def finish(self, inbound: InboundId) -> None:
        raise StoreBusy("locked")

    async def migrate_chat(self, migrate: MigrateChat) -> int:
        raise StoreBusy("locked")


async def test_a_busy_store_is_told_to_the_adapter_so_that_nothing_is_acknowledged() -> None:
    intake = Intake(
        BusyStore(), access(), OpenGate(), Wakeups(), Heard(), NOTHING_MISSED, NOBODY_SIGNS_IN
    )

    with pytest.raises(StoreBusy):
        await intake.emit(message("hi", n=1))


async def test_after_closing_nothing_is_taken_or_acknowledged(door: Door) -> None:
    door.intake.close()

    with pytest.raises(StoreBusy):
        await door.intake.emit(message("hi", n=1))
    assert door.count("inbound") == 0


@pytest.mark.parametrize(("sender", "sessions"), [(ADMIN, 2), (ANNA, 2)])
async def test_whoever_may_give_the_command_gets_a_new_session(
    door: Door, sender: Actor, sessions: int
) -> None:
    await door.intake.emit(message("hi", n=1, sender=sender))
    await door.intake.emit(command("new", n=2, sender=sender))

    assert door.count("session") == sessions


@requirement("threat.s25", "access.refusals.counted")
async def test_a_flood_of_an_outsider_leaves_the_database_as_it_was_and_the_log_short(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    tables = ("inbound", "conversation", "chat", "message", "delivery", "pairing", "event")
    before = [door.count(table) for table in tables]
    for n in range(2_000):
        await door.intake.emit(message("my secret", n=n, sender=STRANGER))

    assert [door.count(table) for table in tables] == before
    assert door.refusals.counts == {("loop", Refusal.STRANGER): 2_000}
    assert len(caplog.records) == 10
    for n in range(100):
        await door.intake.emit(press("token", n=5_000 + n, sender=STRANGER))
    assert door.count("inbound") == before[0] + 20
