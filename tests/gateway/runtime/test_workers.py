import asyncio
from pathlib import Path
from typing import cast

import pytest

from gateway.domain.canonical import CanonicalJson
from gateway.domain.delivery import Part
from gateway.domain.errors import StoreBusy
from gateway.ports import Approver, Store
from gateway.runtime.busy import QUEUED
from gateway.runtime.turn import BROKE, STOPPED
from tests.fakes.clock import HastyClock
from tests.fakes.house import House, running
from tests.fakes.loopback import ANNA, BEN, LoopbackRenderer, chat
from tests.fakes.model import ScriptedModel, SlowModel, calls_tool, says
from tests.fakes.tools import FakeTools, tool
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ADD = "mcp__demo__add"
ENDS = "SELECT state FROM turn ORDER BY id"


@requirement("turn.order")
async def test_a_conversation_has_one_turn_at_a_time_while_others_go_on(tmp_path: Path) -> None:
    model = SlowModel()

    async with running(tmp_path, model) as house:
        for n in (1, 2, 3):
            await house.say(f"first {n}", place=chat(n))
        for _ in range(3):
            await model.asked.acquire()
        await house.say("second", place=chat(1))
        await asyncio.sleep(0.05)
        assert model.under_way == 3
        assert house.rows(ENDS) == [("running",)] * 3

        for _ in range(4):
            model.gate.release()
        assert await house.replies(3, place=chat(1)) == [QUEUED, "re first 1", "re second"]


@requirement("busy.none_lost", "case.db11", "fault.f28")
async def test_messages_during_a_turn_and_one_as_it_ends_are_answered_once_in_order(
    tmp_path: Path,
) -> None:
    model = SlowModel()

    async with running(tmp_path, model) as house:
        await house.say("m1")
        await model.asked.acquire()
        for text in ("m2", "m3", "m4"):
            await house.say(text)
        async with asyncio.TaskGroup() as tasks:
            model.gate.release()
            tasks.create_task(house.say("m5"))
        await model.asked.acquire()
        model.gate.release()
        model.gate.release()
        await eventually_async(
            lambda: house.rows("SELECT count(*) FROM inbound WHERE state <> 'done'") == [(0,)]
        )
        ends = house.rows(ENDS)
        answered = house.rows(
            "SELECT m.body FROM inbound i JOIN message m ON m.id = i.message_id"
            " ORDER BY i.turn_id, i.id"
        )

    assert [text for (text,) in answered] == ["m1", "m2", "m3", "m4", "m5"]
    replies = [text for text in house.adapter.texts() if text != QUEUED]
    assert len(ends) == len(model.requests) == len(replies) in {2, 3}
    assert model.most == 1
    assert model.users(0) == ["m1"]
    assert model.users(1)[:5] == ["m1", "re m1", "m2", "m3", "m4"]


async def test_two_people_in_one_conversation_get_a_turn_each(tmp_path: Path) -> None:
    model = SlowModel()

    async with running(tmp_path, model) as house:
        await house.say("a")
        await model.asked.acquire()
        await house.say("b", sender=BEN)
        await house.say("c", sender=ANNA)
        for _ in range(3):
            model.gate.release()
        assert await house.replies(4) == [QUEUED, "re a", "re b", "re c"]
        assert house.rows("SELECT requester FROM turn ORDER BY id") == [
            ("loop:1",),
            ("loop:2",),
            ("loop:1",),
        ]

    # What waits for its own turn is not told ahead of it.
    assert model.users(1) == ["a", "re a", "b"]


@requirement("turn.stop")
async def test_stop_ends_the_turn_and_its_question_and_the_next_message_is_answered(
    tmp_path: Path,
) -> None:
    tools = FakeTools()
    tools.add(tool("add"), gated=True)
    model = ScriptedModel([calls_tool(ADD), says("again")])

    async with running(tmp_path, model, tools=tools) as house:
        await house.say("add")
        await house.adapter.until(lambda: bool(house.adapter.cards()))
        await house.give("stop")
        assert await house.replies(1) == [STOPPED]
        assert house.rows("SELECT state, decision FROM question") == [("cancelled", "withdraw")]
        assert house.rows(ENDS) == [("cancelled",)]
        assert house.rows("SELECT state FROM step WHERE kind = 'tool'") == [("error",)]
        await house.say("and now?")
        # One text of the end: the command adds none.
        assert await house.replies(2) == [STOPPED, "again"]
        closed = [item.body for item in house.adapter.sent if item.kind == "edit"]

    assert tools.ran == []
    assert any("No longer waiting: stopped" in body for body in closed)


@requirement("turn.stop")
async def test_a_call_that_was_under_way_when_stopped_is_cancelled_and_unknown(
    tmp_path: Path,
) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(arguments: CanonicalJson, approver: Approver) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    tools = FakeTools()
    tools.add(tool("add"), hang)

    async with running(tmp_path, ScriptedModel([calls_tool(ADD)]), tools=tools) as house:
        await house.say("add")
        await started.wait()
        assert await house.runtime.workers.stop(chat(), by=ANNA)
        assert cancelled.is_set()
        assert not await house.runtime.workers.stop(chat(), by=ANNA)
        assert house.rows("SELECT state FROM step WHERE kind = 'tool'") == [("unknown",)]


async def test_there_is_nothing_to_stop_where_no_turn_runs(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel()) as house:
        assert not await house.runtime.workers.stop(chat(), by=ANNA)
        await house.say("hi")
        await house.replies(1)
        assert not await house.runtime.workers.stop(chat(), by=ANNA)


async def test_at_shutdown_a_running_turn_is_finished_and_its_reply_sent(tmp_path: Path) -> None:
    model = SlowModel()

    async with running(tmp_path, model) as house:
        await house.say("hi")
        await model.asked.acquire()
        house.runtime.stop()
        await asyncio.sleep(0)
        model.gate.release()

    assert house.adapter.texts() == ["re hi"]


async def test_at_shutdown_a_turn_that_waits_on_a_person_is_parked_at_once(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(tool("add"), gated=True)

    async with asyncio.timeout(5):
        async with running(tmp_path, ScriptedModel([calls_tool(ADD)]), tools=tools) as house:
            await house.say("add")
            await house.adapter.until(lambda: bool(house.adapter.cards()))

    assert house.rows("SELECT state FROM question") == [("pending",)]
    assert house.rows("SELECT lease_owner FROM conversation") == [(None,)]


async def test_a_turn_taken_over_by_another_worker_ends_without_a_word(tmp_path: Path) -> None:
    model = SlowModel()

    async with running(tmp_path, model) as house:
        await house.say("hi")
        await model.asked.acquire()
        await _take_over(house)
        model.gate.release()
        await eventually_async(lambda: not house.runtime.workers.is_busy(chat()))
        assert house.rows(ENDS) == [("running",)]

    assert house.adapter.texts() == []


class BrokenRenderer(LoopbackRenderer):
    """Cannot lay out one text."""

    def text(self, markdown: str) -> tuple[Part, ...]:
        if markdown == "poison":
            raise ValueError("no layout")
        return super().text(markdown)


async def test_a_reply_that_cannot_be_stored_ends_as_a_sentence_instead_of_being_asked_for_ever(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([says("poison"), says("fine")])

    async with running(tmp_path, model, renderer=BrokenRenderer()) as house:
        await house.say("one")
        assert await house.replies(1) == [BROKE]
        await house.say("two")
        assert (await house.replies(2))[1] == "fine"
        assert house.rows(ENDS) == [("failed",), ("done",)]


class OftenBusy:
    """A store of which every operation is busy the first time it is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.refused: set[str] = set()

    def __getattr__(self, name: str) -> object:
        if name in self.refused:
            return getattr(self._store, name)
        self.refused.add(name)
        return self._busy

    async def _busy(self, *_: object, **__: object) -> None:
        raise StoreBusy("locked")


async def test_a_store_that_is_busy_for_a_moment_loses_no_step_and_no_reply(tmp_path: Path) -> None:
    tools = FakeTools()
    tools.add(tool("add"))
    model = ScriptedModel([calls_tool(ADD), says("done")])
    stores: list[OftenBusy] = []

    def watch(store: Store) -> Store:
        stores.append(OftenBusy(store))
        return cast("Store", stores[0])

    async with running(tmp_path, model, tools=tools, clock=HastyClock(), watch=watch) as house:
        with pytest.raises(StoreBusy):
            await house.say("add")
        await house.say("add")
        assert await house.replies(1) == ["done"]

    assert len(tools.ran) == 1
    assert len(model.requests) == 2
    assert {"claim_turn", "record_steps", "commit_turn", "claim_delivery"} <= stores[0].refused


async def _take_over(house: House) -> None:
    """Claim the conversation as a second process would after the lease ran out."""
    # Asked for together, so that the worker under test cannot claim in between.
    _, claim = await asyncio.gather(
        house.store.recover(worker="other"), house.store.claim_turn(worker="other")
    )
    assert claim is not None
