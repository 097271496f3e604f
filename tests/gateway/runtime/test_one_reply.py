"""However a turn is cut off at its end, people read one answer at most, and one worker works."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from gateway.domain.delivery import Delivery, Receipt
from gateway.domain.operations.turns import Committed, CommitTurn
from gateway.ports import Store
from gateway.runtime.turn import STOPPED
from gateway.telemetry.faults import FaultPoint, armed, parse
from tests.fakes.house import House, running
from tests.fakes.loopback import Loopback
from tests.fakes.model import ScriptedModel, SlowModel
from tests.support.eventually import eventually_async
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ROUNDS = 12
REPLIES = ["re first", "re second"]
OPEN = "SELECT count(*) FROM delivery WHERE state <> 'sent'"


def remembering() -> Loopback:
    """A platform that tells whether it has a message."""
    chats = Loopback()

    def known(delivery: Delivery) -> Receipt | None:
        had = any(item.key == delivery.key for item in chats.sent)
        return Receipt(native_id="had") if had else None

    chats.on_settle = known
    return chats


@requirement("case.db14")
@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.MODEL_ANSWERED,
        FaultPoint.REPLY_READY,
        FaultPoint.REPLY_COMMITTED,
        FaultPoint.DELIVERY_CLAIMED,
        FaultPoint.DELIVERY_SENT,
        FaultPoint.DELIVERY_MARKED,
    ],
)
async def test_a_process_that_ends_around_the_final_send_leaves_one_reply(
    tmp_path: Path, point: FaultPoint
) -> None:
    chats = remembering()
    with armed(parse(f"{point}:1:hang")):
        async with running(tmp_path, ScriptedModel(), adapter=chats, crash=True) as house:
            await house.say("hello")
            await reached(house, chats, point)

    async with running(tmp_path, ScriptedModel(), adapter=chats, first=1) as house:
        # What was answered does not come up again with the next message.
        await house.say("more")
        await chats.until(lambda: "echo: more" in chats.texts())
        await eventually_async(lambda: house.rows(OPEN) == [(0,)])
        assert house.rows("SELECT count(*) FROM turn") == [(2,)]

    assert chats.texts() == ["echo: hello", "echo: more"]
    assert all(not item.marks for item in chats.sent)


async def reached(house: House, chats: Loopback, point: FaultPoint) -> None:
    """Return once the process hangs at the point."""
    match point:
        case FaultPoint.MODEL_ANSWERED | FaultPoint.REPLY_READY:
            await until_row(house, "SELECT state FROM turn", "running")
        case FaultPoint.REPLY_COMMITTED:
            await until_row(house, "SELECT state FROM turn", "done")
        case FaultPoint.DELIVERY_CLAIMED:
            await until_row(house, "SELECT state FROM delivery", "sending")
        case _:
            await chats.until(lambda: bool(chats.texts()))


async def until_row(house: House, query: str, value: str) -> None:
    await eventually_async(lambda: house.rows(query) == [(value,)])


class HeldAtEnd:
    """A store that stores the end of a turn only when the test lets it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked = asyncio.Event()
        self.free = asyncio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def commit_turn(self, commit: CommitTurn) -> Committed:
        self.asked.set()
        await self.free.wait()
        return await self._store.commit_turn(commit)


@requirement("case.db14")
async def test_a_turn_that_is_stopped_while_its_reply_is_stored_has_one_end(tmp_path: Path) -> None:
    held: list[HeldAtEnd] = []

    def watch(store: Store) -> Store:
        held.append(HeldAtEnd(store))
        return cast("Store", held[0])

    async with running(tmp_path, ScriptedModel(), watch=watch) as house:
        await house.say("hello")
        await held[0].asked.wait()
        await house.give("stop")
        held[0].free.set()
        await house.say("more")
        await house.adapter.until(lambda: "echo: more" in house.adapter.texts())

        ends = [text for text in house.adapter.texts() if text in {"echo: hello", STOPPED}]
        assert ends == ["echo: hello"]
        assert house.rows("SELECT count(*) FROM message WHERE body = 'echo: hello'") == [(1,)]


@requirement("fault.f29")
async def test_a_turn_taken_up_again_and_a_message_at_that_moment_have_one_worker(
    tmp_path: Path,
) -> None:
    for number in range(ROUNDS):
        home = tmp_path / str(number)
        home.mkdir()
        hanging = SlowModel()
        async with running(home, hanging, crash=True) as house:
            await house.say("first")
            await hanging.asked.acquire()

        model = SlowModel()
        async with running(home, model, first=1) as house:
            # Together with the turn that is taken up, some a little later than others.
            async with asyncio.TaskGroup() as tasks:
                for _ in range(number % 4 + 1):
                    tasks.create_task(house.say("second"))
                for _ in range(number % 3):
                    await asyncio.sleep(0)
            for _ in range(2):
                await model.asked.acquire()
                assert model.under_way == 1
                model.gate.release()
            await house.adapter.until(lambda house=house: texts(house)[-2:] == REPLIES)

            assert model.most == 1
            assert house.rows("SELECT count(*) FROM turn") == [(2,)]
            assert texts(house) == REPLIES


def texts(house: House) -> list[str]:
    """Return the answers people read."""
    return [text for text in house.adapter.texts() if text.startswith("re ")]
