import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.domain.delivery import Delivery, DeliveryKind, Mark, Origin, Part, Receipt
from gateway.domain.errors import (
    AdapterUnauthorized,
    DeliveryDeferred,
    DeliveryRejected,
    DeliveryUnsure,
)
from gateway.domain.files import FileState
from gateway.domain.message import Attachment, AttachmentKind
from gateway.domain.operations.deliveries import ClaimDelivery, Enqueue
from gateway.runtime.delivery import MAX_SENDS, MAX_UNSURE_ATTEMPTS, DeliveryLoop
from gateway.runtime.wakeups import Wakeups
from gateway.telemetry.faults import FaultPoint, armed, parse
from store import OpenStore, open_store
from tests.fakes.clock import HastyClock
from tests.fakes.house import enqueue, rows
from tests.fakes.loopback import PLATFORM, Loopback, chat

pytestmark = pytest.mark.anyio

STATES = "SELECT state, native_id, marks, attempts FROM delivery ORDER BY id"


class Outbox:
    """A store with one delivery loop over it, on a clock whose pauses are over at once."""

    def __init__(
        self,
        opened: OpenStore,
        path: Path,
        adapter: Loopback,
        clock: HastyClock,
        *,
        send_seconds: float,
    ) -> None:
        self.store = opened.store
        self.path = path
        self.adapter = adapter
        self.clock = clock
        self.wakeups = Wakeups()
        self.loop = DeliveryLoop(
            adapter=adapter,
            store=opened.store,
            deliveries=opened.readers.deliveries,
            wakeups=self.wakeups,
            clock=clock,
            worker="test",
            send_seconds=send_seconds,
        )

    async def put(self, *texts: str, n: int = 1) -> None:
        for text in texts:
            await self.store.enqueue(enqueue(chat(n), text, key=f"{n}:{text}"))
        self.wakeups.deliveries()

    def states(self) -> list[tuple[object, ...]]:
        return rows(self.path, STATES)

    async def settle(self) -> None:
        """Return once nothing of the outbox is open any more."""
        query = "SELECT count(*) FROM delivery WHERE state NOT IN ('sent', 'dead')"
        async with asyncio.timeout(10):
            while rows(self.path, query) != [(0,)]:
                self.wakeups.deliveries()
                await asyncio.sleep(0.01)


@asynccontextmanager
async def outbox(
    home: Path, adapter: Loopback, *, runs: bool = True, send_seconds: float = 60
) -> AsyncGenerator[Outbox]:
    path = home / "state.db"
    clock = HastyClock()
    async with open_store(path, clock=clock) as opened, asyncio.TaskGroup() as tasks:
        box = Outbox(opened, path, adapter, clock, send_seconds=send_seconds)
        if runs:
            tasks.create_task(box.loop.run())
        yield box
        box.loop.shut_down()


def once(error: Exception) -> Callable[[Delivery], None]:
    """Fail the first send."""
    failures = [error]

    def on_send(delivery: Delivery) -> None:
        if failures:
            raise failures.pop()

    return on_send


async def test_texts_of_a_place_go_out_in_order_and_get_the_platforms_id(tmp_path: Path) -> None:
    async with outbox(tmp_path, Loopback()) as box:
        await box.put("a", "b", "c")
        await box.settle()

    assert box.adapter.texts() == ["a", "b", "c"]
    assert [row[:2] for row in box.states()] == [("sent", "m0"), ("sent", "m1"), ("sent", "m2")]


async def test_a_refusal_with_a_time_waits_that_long_and_loses_nothing(tmp_path: Path) -> None:
    adapter = Loopback(on_send=once(DeliveryDeferred(PLATFORM, 30)))
    async with outbox(tmp_path, adapter) as box:
        started = box.clock.now()
        await box.put("a", "b")
        await box.settle()

        assert (box.clock.now() - started).total_seconds() >= 30
        assert adapter.texts() == ["a", "b"]


async def test_a_send_that_arrived_after_all_is_not_made_again(tmp_path: Path) -> None:
    adapter = Loopback(on_send=once(DeliveryUnsure(PLATFORM, "timeout")))
    adapter.on_settle = lambda delivery: Receipt(native_id="found")
    async with outbox(tmp_path, adapter) as box:
        await box.put("a")
        await box.settle()

        assert box.states() == [("sent", "found", "", 1)]
    assert adapter.texts() == []


async def test_a_send_that_did_not_arrive_is_made_again_without_a_mark(tmp_path: Path) -> None:
    adapter = Loopback(on_send=once(DeliveryUnsure(PLATFORM, "timeout")))
    async with outbox(tmp_path, adapter) as box:
        await box.put("a", "b")
        await box.settle()

    assert adapter.texts() == ["a", "b"]
    assert adapter.sent[0].marks == frozenset()
    assert adapter.sent[0].key == adapter.settled[0].key


@pytest.mark.parametrize("error", [DeliveryUnsure(PLATFORM, "reset"), RuntimeError("a bug")])
async def test_what_cannot_be_found_out_is_sent_again_with_a_visible_mark(
    tmp_path: Path, error: Exception
) -> None:
    adapter = Loopback(on_send=once(error), on_settle=cannot_tell)
    async with outbox(tmp_path, adapter) as box:
        await box.put("a")
        await box.settle()

    assert [item.marks for item in adapter.sent] == [frozenset({Mark.REPEAT})]


async def test_a_send_that_never_gets_an_answer_is_given_up_in_the_end(tmp_path: Path) -> None:
    def silent(delivery: Delivery) -> None:
        if delivery.body == "a":
            raise DeliveryUnsure(PLATFORM, "timeout")

    adapter = Loopback(on_send=silent, on_settle=cannot_tell)
    async with outbox(tmp_path, adapter) as box:
        await box.put("a", "b")
        await box.settle()

        assert [row[0] for row in box.states()] == ["dead", "sent"]
        assert box.states()[0][3] == MAX_UNSURE_ATTEMPTS


async def test_a_message_the_platform_never_takes_holds_up_no_other(tmp_path: Path) -> None:
    adapter = Loopback(on_send=once(DeliveryRejected(PLATFORM, "too long")))
    async with outbox(tmp_path, adapter) as box:
        await box.put("a", "b")
        await box.settle()

        assert [row[0] for row in box.states()] == ["dead", "sent"]


async def test_lost_credentials_keep_the_message_for_later(tmp_path: Path) -> None:
    adapter = Loopback(on_send=once(AdapterUnauthorized(PLATFORM, "revoked")))
    async with outbox(tmp_path, adapter) as box:
        await box.put("a")
        await box.settle()

        assert box.states()[0][0] == "sent"


async def test_what_an_earlier_process_left_unsure_is_settled_before_the_next_of_its_place(
    tmp_path: Path,
) -> None:
    adapter = Loopback()
    async with outbox(tmp_path, adapter, runs=False) as box:
        await leave_open(box, "a", n=1)
        await box.put("b")

        adapter.on_settle = lambda delivery: Receipt(native_id="found")
        async with running(box):
            await box.settle()

        assert [row[:2] for row in box.states()] == [("sent", "found"), ("sent", "m0")]
    assert adapter.texts() == ["b"]


async def test_settling_that_hangs_holds_up_its_own_place_alone(tmp_path: Path) -> None:
    adapter = HangingSettling()
    adapter.on_settle = lambda delivery: Receipt(native_id="found")
    async with outbox(tmp_path, adapter, runs=False) as box:
        await leave_open(box, "a", n=1)
        await box.put("b", n=1)
        async with running(box):
            await box.put("c", n=2)
            await adapter.until(lambda: adapter.texts() == ["c"])
            adapter.free.set()
            await box.settle()

        assert adapter.texts() == ["c", "b"]
        assert box.states()[0][:2] == ("sent", "found")


async def test_any_number_of_settlings_that_hang_leave_room_to_send(tmp_path: Path) -> None:
    adapter = HangingSettling()
    async with outbox(tmp_path, adapter, runs=False) as box:
        for n in range(1, MAX_SENDS + 2):
            await leave_open(box, "a", n=n)
        async with running(box):
            # Twice: the first gives back a slot that more settlings wait for.
            for sent in (["b"], ["b", "c"]):
                await box.put(sent[-1], n=MAX_SENDS + 2)
                await adapter.until(lambda sent=sent: adapter.texts() == sent)
            adapter.free.set()
            await box.settle()

        assert {row[0] for row in box.states()} == {"sent"}


async def test_a_loop_that_is_shut_down_leaves_what_cannot_be_settled_to_the_next_start(
    tmp_path: Path,
) -> None:
    adapter = HangingSettling()
    async with outbox(tmp_path, adapter, runs=False) as box:
        await leave_open(box, "a", n=1)
        async with asyncio.timeout(10), running(box):
            await box.put("b", n=2)
            await adapter.until(lambda: adapter.texts() == ["b"])

        assert [row[0] for row in box.states()] == ["uncertain", "sent"]


async def test_one_send_that_breaks_us_ends_no_other(tmp_path: Path) -> None:
    adapter = Loopback()
    with armed(parse(f"{FaultPoint.DELIVERY_MARKED}:1:raise")):
        async with outbox(tmp_path, adapter) as box:
            await box.put("a", "b")
            await box.settle()

    assert adapter.texts() == ["a", "b"]


async def test_a_platform_that_never_answers_is_not_waited_for_without_end(tmp_path: Path) -> None:
    adapter = HangingChat()
    adapter.on_settle = lambda delivery: Receipt(native_id="found")
    async with outbox(tmp_path, adapter, send_seconds=0.05) as box:
        await box.put("a")
        await box.settle()

        assert box.states() == [("sent", "found", "", 1)]


async def test_one_chat_that_hangs_holds_up_no_other(tmp_path: Path) -> None:
    adapter = HangingChat()
    async with outbox(tmp_path, adapter) as box:
        await box.put("a", "b", n=1)
        await box.put("c", n=2)
        await adapter.until(lambda: adapter.texts() == ["c"])
        adapter.free.set()
        await box.settle()

    assert adapter.texts() == ["c", "a", "b"]


class HangingChat(Loopback):
    """Chat 1 takes its messages only when the test lets it."""

    __slots__ = ("free",)

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()

    async def send(self, delivery: Delivery) -> Receipt:
        if delivery.place == chat(1):
            await self.free.wait()
        return await super().send(delivery)


class HangingSettling(Loopback):
    """What became of a send is told only when the test lets it."""

    __slots__ = ("free",)

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()

    async def settle_unsure(self, delivery: Delivery) -> Receipt | None:
        await self.free.wait()
        return await super().settle_unsure(delivery)


@asynccontextmanager
async def running(box: Outbox) -> AsyncGenerator[None]:
    """Run the loop of an outbox that did not start it."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(box.loop.run())
        yield
        box.loop.shut_down()


async def leave_open(box: Outbox, text: str, *, n: int) -> None:
    """Leave a send without an outcome, as a process does that is killed during it."""
    await box.put(text, n=n)
    assert await claimed(box) is not None
    await box.store.recover(worker="next")


def cannot_tell(delivery: Delivery) -> Receipt | None:
    raise DeliveryUnsure(PLATFORM, "no history")


async def claimed(box: Outbox) -> Delivery | None:
    """Claim a delivery as a process does that ends before it knows the outcome."""
    return await box.store.claim_delivery(
        ClaimDelivery(
            platform=PLATFORM,
            account="",
            worker="gone",
            lease_until=box.clock.now(),
            cost_ms={},
            burst_ms=0,
        )
    )


async def test_a_send_with_files_gets_the_time_they_take(tmp_path: Path) -> None:
    class Slow(Loopback):
        """Takes longer than a text may, and ends by itself."""

        async def send(self, delivery: Delivery) -> Receipt:
            done = asyncio.Event()
            asyncio.get_running_loop().call_later(0.2, done.set)
            await done.wait()
            return await Loopback.send(self, delivery)

    file = Attachment(
        kind=AttachmentKind.FILE,
        media_type="x/y",
        name="big",
        size=1_000_000,
        key="out-big",
        state=FileState.STORED,
    )
    part = Part(kind=DeliveryKind.FILE, body="", files=(file,))
    adapter = Slow()
    async with outbox(tmp_path, adapter, send_seconds=0.05) as box:
        await box.store.enqueue(
            Enqueue(place=chat(), group_key="g", parts=(part,), origin=Origin.SEND)
        )
        await box.settle()

    assert (adapter.settled, [item.attempt for item in adapter.sent]) == ([], [1])
