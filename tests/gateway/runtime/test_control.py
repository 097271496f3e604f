"""The worker of the control lane: order, failures, what is left over from an earlier run."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.domain.errors import AdapterUnauthorized, StoreBusy
from gateway.domain.ids import Actor, InboundId, Place
from gateway.domain.message import ButtonPressed, CommandGiven, InboundEvent
from gateway.domain.operations.deliveries import Enqueue, Enqueued
from gateway.domain.operations.inbound import Accept, Lane
from gateway.ports import PressAnswering
from gateway.runtime.approval_replies import ApprovalReplies
from gateway.runtime.command_replies import CommandReplies, GeneralReplies
from gateway.runtime.control import ControlWorker
from gateway.runtime.presses import Presses
from gateway.runtime.wakeups import Wakeups
from tests.fakes.clock import HastyClock
from tests.fakes.loopback import PLATFORM
from tests.fakes.tools import tool
from tests.support.clock import NOON
from tests.support.people import (
    ANNA,
    GROUP,
    ROOT,
    CardRenderer,
    Host,
    People,
    dm,
    limit,
    people,
    token,
)

pytestmark = pytest.mark.anyio

NOTE = tool("add_note")


class Flaky:
    """A store that cannot take the first replies."""

    def __init__(self, chat: People, *errors: Exception) -> None:
        self._chat = chat
        self._errors = list(errors)

    async def enqueue(self, enqueue: Enqueue) -> Enqueued:
        if self._errors:
            raise self._errors.pop(0)
        return await self._chat.store.enqueue(enqueue)

    async def finish(self, inbound: InboundId) -> None:
        await self._chat.store.finish(inbound)


class Deaf:
    """An adapter that cannot answer presses any more."""

    async def answer_press(self, place: Place, interaction: str, text: str) -> None:
        raise AdapterUnauthorized(place.platform, "token revoked")


def worker_of(
    chat: People, store: Flaky, *, answering: Mapping[tuple[str, str], PressAnswering] | None = None
) -> ControlWorker:
    questions = chat.readers.questions
    renderers = {PLATFORM: CardRenderer()}
    presses = Presses(
        chat.store, questions, renderers, chat.decisions, chat.wakeups, chat.clock, chat.config
    )
    commands = CommandReplies(
        chat.access,
        GeneralReplies(chat.readers, Host(), chat.access, _nothing_runs).replies,
        ApprovalReplies(questions, chat.decisions, chat.clock).replies,
    )
    return ControlWorker(
        store,
        chat.readers.inbox,
        renderers,
        presses,
        commands,
        Wakeups(),
        HastyClock(),
        answering=answering,
    )


async def work_off(chat: People, worker: ControlWorker) -> None:
    """Let a worker run until nothing waits."""
    running = chat.tasks.create_task(worker.run(), name="worker")
    async with asyncio.timeout(10):
        while await chat.readers.inbox.controls():
            continue
    running.cancel()


def command(name: str, *, n: int, place: Place = GROUP, sender: Actor = ANNA) -> CommandGiven:
    return CommandGiven(
        place=place,
        native_id=f"x{n}",
        dedupe=f"x{n}",
        sender=sender,
        sent_at=NOON,
        name=name,
    )


async def put(chat: People, *events: InboundEvent) -> None:
    """Accept without waking the worker of the chat."""
    for event in events:
        await chat.store.accept(Accept(event=event, lane=Lane.CONTROL))


async def test_what_an_earlier_run_left_is_worked_off_at_start_in_order(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db", working=False) as chat:
        await put(chat, command("whoami", n=1), command("status", n=2), command("frob", n=3))
        clock = chat.clock
    async with people(tmp_path / "state.db", clock=clock) as chat:
        async with asyncio.timeout(10):
            while await chat.readers.inbox.controls():
                continue
        first, second, third = [item.body for item in await chat.sent()]
        assert first.startswith("You are")
        assert "Conversation" in second
        assert "/frob" in third


async def test_a_busy_store_is_tried_again_until_it_takes_the_answer(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db", working=False) as chat:
        store = Flaky(chat, StoreBusy("locked"), StoreBusy("locked"))
        await put(chat, command("whoami", n=1))
        await work_off(chat, worker_of(chat, store))
        (reply,) = await chat.sent()
        assert reply.body.startswith("You are")


async def test_an_event_that_fails_is_told_logged_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with people(tmp_path / "state.db", working=False) as chat:
        store = Flaky(chat, ValueError("boom"))
        await put(chat, command("whoami", n=1), command("status", n=2))
        await work_off(chat, worker_of(chat, store))
        sorry, status = [item.body for item in await chat.sent()]
        assert sorry.startswith("Something went wrong")
        assert "boom" not in sorry
        assert "Conversation" in status
        assert "control event" in caplog.text


async def test_a_press_that_cannot_be_answered_still_counts(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db", working=False) as chat:
        call = await chat.call()

        async def ask() -> bool:
            async with limit() as deadline:
                return (await chat.broker.approve(call, NOTE, deadline=deadline)).allowed

        waiting = chat.tasks.create_task(ask(), name="ask")
        card = await chat.card()
        await put(chat, _press(token(card, "Allow once")))
        worker = worker_of(chat, Flaky(chat), answering={(PLATFORM, ""): Deaf()})
        await work_off(chat, worker)
        assert await waiting


async def test_a_press_worked_off_twice_has_one_effect_and_one_answer(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db", toasts=True) as chat:
        call = await chat.call()

        async def ask() -> bool:
            async with limit() as deadline:
                return (await chat.broker.approve(call, NOTE, deadline=deadline)).allowed

        waiting = chat.tasks.create_task(ask(), name="ask")
        card = await chat.card()
        await chat.press(token(card, "Allow once"), interaction="a")
        await chat.press(token(card, "Allow once"), interaction="b")
        assert await waiting
        assert [text for _, text in chat.toasts.shown] == ["Allowed once.", "Allowed once."]
        edits = [item for item in await chat.sent() if item.edits]
        assert len(edits) <= 1


async def test_a_slow_command_holds_up_only_its_own_conversation(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        call = await chat.call()

        async def ask() -> bool:
            async with limit() as deadline:
                return (await chat.broker.approve(call, NOTE, deadline=deadline)).allowed

        waiting = chat.tasks.create_task(ask(), name="ask")
        card = await chat.card()
        chat.host.hold.clear()
        await chat.accept(command("reload-mcp", n=1, place=dm(ROOT), sender=ROOT))
        async with asyncio.timeout(10):
            await chat.host.reached.wait()
            await chat.press(token(card, "Allow once"))
            assert await waiting
        assert len(await chat.readers.inbox.controls()) == 1
        chat.host.hold.set()


def _press(pressed: str) -> ButtonPressed:
    return ButtonPressed(
        place=GROUP,
        native_id="p1",
        dedupe="p1",
        sender=ANNA,
        sent_at=NOON,
        token=pressed,
        interaction="i",
    )


async def _nothing_runs(place: Place, *, by: Actor) -> bool:
    return False
