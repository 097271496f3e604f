"""A reply is shown while its model writes it, and comes once however that goes."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.delivery import DeliveryKind
from gateway.domain.errors import (
    DeliveryDeferred,
    DeliveryRejected,
    DeliveryUnsure,
    ModelUnavailable,
)
from gateway.domain.ids import ConversationId, SessionId, TurnId
from gateway.domain.operations.turns import Claim
from gateway.runtime.streaming import FIRST_SECONDS, LAST_SECONDS, REFRESH_SECONDS, Growing, Streams
from gateway.runtime.turn import STOPPED
from gateway.runtime.wakeups import Wakeups
from store import open_store
from tests.fakes.clock import HastyClock
from tests.fakes.house import House, running
from tests.fakes.loopback import ANNA, PLATFORM, Loopback, chat
from tests.fakes.model import DictatedModel, calls, says
from tests.fakes.previews import Board, left_on_screen
from tests.support.clock import ManualClock
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

FADING = pytest.mark.parametrize("fades", [True, False], ids=["fades", "message"])


def claim() -> Claim:
    return Claim(
        conversation=ConversationId(1),
        place=chat(),
        session=SessionId(1),
        fence=1,
        turn=TurnId(1),
        requester=ANNA,
        inputs=(),
        steps=(),
        rounds=0,
        attempts=1,
        resumed=False,
    )


async def over(house: House, *, replies: int) -> list[str]:
    """Return what is left on the screen once everything is sent."""
    await eventually_async(
        lambda: (
            house.rows("SELECT count(*) FROM turn WHERE ended_at IS NOT NULL") == [(replies,)]
            and house.rows("SELECT count(*) FROM delivery WHERE state NOT IN ('sent','dead')")
            == [(0,)]
        )
    )
    return left_on_screen(house.adapter.sent)


@requirement("stream.as_generated")
@FADING
async def test_it_grows_with_what_is_newest_and_comes_once(tmp_path: Path, fades: bool) -> None:
    model, board = DictatedModel(), Board(fades=fades)

    async with running(tmp_path, model, streaming=board, clock=HastyClock()) as house:
        await house.say("hi")
        model.dictate("one")
        if not fades:
            # Its opening said this much.
            await house.adapter.until(lambda: house.adapter.texts() == ["… one"])
            model.dictate(" and")
        await board.until("one" if fades else "one and")
        board.gate.clear()
        model.dictate(" two")
        await board.until("one two" if fades else "one and two")
        model.dictate(*(f" {n}" for n in range(100)))
        await eventually_async(lambda: model.listens)
        board.gate.set()
        last = ("one two" if fades else "one and two") + "".join(f" {n}" for n in range(100))
        await board.until(last)
        model.dictate(says(last))
        assert await over(house, replies=1) == [last]

    assert len(board.shown) == 3
    assert {preview.turn for preview in board.shown} == {1}


@requirement("design.reply.one_notification")
async def test_what_stands_for_a_reply_is_taken_away_once_the_reply_is_there(
    tmp_path: Path,
) -> None:
    model, board = DictatedModel(), Board(fades=False)

    async with running(tmp_path, model, streaming=board, clock=HastyClock()) as house:
        await house.say("hi")
        model.dictate("first")
        await house.adapter.until(lambda: bool(house.adapter.sent))
        model.dictate(" words", says("first words"))
        await over(house, replies=1)

    kinds = [(item.kind, item.body, item.edits) for item in house.adapter.sent]
    assert kinds == [
        (DeliveryKind.TEXT, "… first", None),
        (DeliveryKind.TEXT, "first words", None),
        (DeliveryKind.EDIT, "", "m0"),
    ]


@FADING
async def test_what_is_said_before_tools_run_stays_above_what_follows(
    tmp_path: Path, fades: bool
) -> None:
    model, board = DictatedModel(), Board(fades=fades)

    async with running(tmp_path, model, streaming=board, clock=HastyClock()) as house:
        await house.say("hi")
        model.dictate(
            "Let me look.", calls(("tool_search", {"queries": ["x"]}), text="Let me look.")
        )
        await eventually_async(lambda: len(model.requests) == 2)
        model.dictate("Nothing")
        await board.until("Let me look.\n\nNothing")
        model.dictate(says("Nothing there."))
        assert await over(house, replies=1) == ["Nothing there."]


@FADING
async def test_half_an_answer_that_failed_is_written_anew(tmp_path: Path, fades: bool) -> None:
    model, board = DictatedModel(), Board(fades=fades)

    async with running(tmp_path, model, streaming=board, clock=HastyClock()) as house:
        await house.say("hi")
        model.dictate("The half", " of")
        await eventually_async(lambda: bool(board.shown or house.adapter.sent))
        model.dictate(ModelUnavailable("scripted", "cut"), "All", " of it")
        await board.until("All of it")
        model.dictate(says("All of it"))
        assert await over(house, replies=1) == ["All of it"]


@FADING
async def test_a_turn_that_is_stopped_leaves_only_that_word(tmp_path: Path, fades: bool) -> None:
    model, board = DictatedModel(), Board(fades=fades)

    async with running(tmp_path, model, streaming=board, clock=HastyClock()) as house:
        await house.say("hi")
        model.dictate("half")
        await eventually_async(lambda: bool(board.shown or house.adapter.sent))
        await house.give("stop")
        assert await over(house, replies=1) == [STOPPED]


@requirement("fault.f3")
@FADING
async def test_a_crash_in_the_middle_leads_to_one_answer_and_nothing_beside_it(
    tmp_path: Path, fades: bool
) -> None:
    adapter, clock = Loopback(), HastyClock()
    model, board = DictatedModel(), Board(fades=fades)
    running_on = running(tmp_path, model, streaming=board, adapter=adapter, clock=clock, crash=True)
    async with running_on as house:
        await house.say("hi")
        model.dictate("half")
        await eventually_async(lambda: bool(board.shown or adapter.sent))
        model.dictate(" an")
        await board.until("half an")

    again = DictatedModel()
    async with running(tmp_path, again, streaming=board, adapter=adapter, clock=clock) as house:
        again.dictate("Whole")
        await board.until("Whole")
        again.dictate(says("Whole."))
        assert await over(house, replies=1) == ["Whole."]
    assert {preview.turn for preview in board.shown} == {1}
    assert len([item for item in adapter.sent if item.body.startswith("…")]) == (0 if fades else 1)


@pytest.mark.parametrize(
    "failure",
    [
        DeliveryRejected("loop", "no such chat"),
        DeliveryUnsure("loop", "no answer"),
        RuntimeError("our own mistake"),
    ],
    ids=["refused", "unsure", "broken"],
)
@FADING
async def test_a_reply_comes_whatever_becomes_of_what_is_shown(
    tmp_path: Path, fades: bool, failure: Exception
) -> None:
    model, board = DictatedModel(), Board(fades=fades)
    board.failures.append(failure)

    async with running(tmp_path, model, streaming=board, clock=HastyClock()) as house:
        await house.say("hi")
        model.dictate("half")
        await eventually_async(lambda: not board.failures or bool(house.adapter.sent))
        model.dictate(" of it")
        await eventually_async(lambda: not board.failures)
        model.dictate(says("half of it"))
        assert await over(house, replies=1) == ["half of it"]


async def test_a_message_that_may_stand_there_already_is_not_sent_again(tmp_path: Path) -> None:
    model, board, adapter = DictatedModel(), Board(fades=False), Loopback()

    def lose_the_preview(delivery: object) -> None:
        if "…" in str(delivery):
            raise DeliveryUnsure("loop", "no answer")

    def unknown(delivery: object) -> None:
        raise DeliveryUnsure("loop", "it cannot be found out")

    adapter.on_send, adapter.on_settle = lose_the_preview, unknown
    async with running(
        tmp_path, model, streaming=board, adapter=adapter, clock=HastyClock()
    ) as house:
        await house.say("hi")
        model.dictate("half")
        await eventually_async(lambda: house.rows("SELECT state FROM delivery") == [("dead",)])
        model.dictate(says("half of it"))
        assert await over(house, replies=1) == ["half of it"]


@requirement("case.t13")
async def test_a_refusal_for_now_is_a_pause_of_the_whole_chat(tmp_path: Path) -> None:
    model, board, clock = DictatedModel(), Board(), ManualClock()
    board.failures.append(DeliveryDeferred("loop", 1000.0))

    async with running(tmp_path, model, streaming=board, clock=clock) as house:
        await house.say("hi")
        model.dictate("half")
        parked = "SELECT parked_until - :now FROM chat WHERE parked_until IS NOT NULL"

        def is_parked() -> bool:
            clock.advance(FIRST_SECONDS)
            now = clock.now().timestamp() * 1000
            return any(left > 900_000 for (left,) in house.rows(parked, now))

        await eventually_async(is_parked)
        model.dictate(says("half of it"))
        await eventually_async(lambda: house.rows("SELECT state FROM delivery") == [("ready",)])
        clock.advance(900)
        assert house.adapter.sent == []
        clock.advance(101)
        assert await over(house, replies=1) == ["half of it"]
    assert board.shown == []


async def test_where_nobody_looks_on_the_model_is_not_asked_to_show_its_text(
    tmp_path: Path,
) -> None:
    model = DictatedModel()
    model.dictate("one", says("one"))

    async with running(tmp_path, model) as house:
        await house.say("hi")
        assert await house.replies(1) == ["one"]

    assert model.listened == [False]


# --- alone --------------------------------------------------------------------------------


async def settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def streams(tmp_path: Path, clock: ManualClock, board: Board) -> object:
    async with open_store(tmp_path / "state.db", clock=clock) as opened:
        yield Streams(
            {(PLATFORM, ""): board},
            store=opened.store,
            deliveries=opened.readers.deliveries,
            wakeups=Wakeups(),
            clock=clock,
        )


@pytest.fixture
def board() -> Board:
    return Board()


async def test_an_answer_that_is_there_at_once_has_nothing_before_it(
    streams: Streams, board: Board, clock: ManualClock
) -> None:
    growing = streams.growing(chat())
    assert growing is not None

    async with streams.shown(claim(), growing, paused=lambda: False):
        growing.add("Yes.")
        await settle()
        clock.advance(FIRST_SECONDS - 0.1)
        await settle()

    clock.advance(60)
    await settle()
    assert board.shown == []


async def test_what_fades_is_shown_again_unless_a_person_is_waited_for(
    streams: Streams, board: Board, clock: ManualClock
) -> None:
    growing, waits = Growing(), asyncio.Event()

    async with streams.shown(claim(), growing, paused=waits.is_set):
        growing.add("Let me look.")
        for _ in range(2):
            await settle()
            clock.advance(FIRST_SECONDS)
        await board.until("Let me look.")
        for n in range(2, 4):
            await settle()
            clock.advance(REFRESH_SECONDS)
            await eventually_async(lambda n=n: len(board.shown) >= n)
        waits.set()
        await settle()
        seen = len(board.shown)
        for _ in range(3):
            clock.advance(REFRESH_SECONDS)
            await settle()

    assert len(board.shown) <= seen + 1
    assert set(board.texts) == {"Let me look."}


async def test_it_waits_for_its_turn_and_then_shows_what_is_newest(
    streams: Streams, board: Board, clock: ManualClock
) -> None:
    growing = Growing()
    board.waits = [2.0, 1.0]

    async with streams.shown(claim(), growing, paused=lambda: False):
        growing.add("one")
        await settle()
        clock.advance(FIRST_SECONDS)
        await settle()
        clock.advance(2.0)
        await settle()
        assert board.shown == []
        growing.add(" two")
        clock.advance(1.0)
        await board.until("one two")

    assert board.texts == ["one two"]


async def test_the_end_waits_for_a_call_that_is_under_way_but_not_for_long(
    streams: Streams, board: Board, clock: ManualClock
) -> None:
    growing, left = Growing(), asyncio.Event()
    board.gate.clear()

    async def turn() -> None:
        async with streams.shown(claim(), growing, paused=lambda: False):
            growing.add("one")
            await board.until("one")
        left.set()

    async with asyncio.timeout(5 + LAST_SECONDS), asyncio.TaskGroup() as tasks:
        tasks.create_task(turn())
        await settle()
        clock.advance(FIRST_SECONDS)
        await board.until("one")
        await settle()
        assert not left.is_set()
        await left.wait()
