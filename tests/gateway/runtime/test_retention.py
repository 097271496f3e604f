import os
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.delivery import DeliveryKind, Origin, Part, Receipt, Sent
from gateway.domain.files import FileState
from gateway.domain.ids import Cursor
from gateway.domain.message import Attachment, AttachmentKind
from gateway.domain.operations.deliveries import ClaimDelivery, Enqueue
from gateway.domain.operations.inbound import Accept, Lane
from gateway.runtime.retention import Retention
from store import OpenStore, open_store
from tests.fakes.house import folder_in
from tests.fakes.loopback import PLATFORM, chat, message
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

DAY = timedelta(days=1).total_seconds()


def in_media(home: Path) -> set[str]:
    return {path.name for path in home.glob("media/*")}


def write(home: Path, name: str) -> None:
    folder_in(home).path("in-0").with_name(name).write_text("x")
    # The clock of the tests is not the disk's.
    os.utime(home / "media" / name, (0, 0))


async def send_file(opened: OpenStore, home: Path, key: str, *, number: int) -> None:
    file = Attachment(
        kind=AttachmentKind.FILE, media_type="x/y", name=key, key=key, state=FileState.STORED
    )
    write(home, key)
    await opened.store.enqueue(
        Enqueue(
            place=chat(number),
            group_key=key,
            parts=(Part(kind=DeliveryKind.FILE, body="", files=(file,)),),
            origin=Origin.SEND,
        )
    )


async def deliver(opened: OpenStore, clock: ManualClock) -> None:
    claim = ClaimDelivery(
        platform=PLATFORM, account="", worker="w", lease_until=clock.now(), cost_ms={}, burst_ms=0
    )
    delivery = await opened.store.claim_delivery(claim)
    assert delivery is not None
    await opened.store.mark_delivery(Sent(id=delivery.id, receipt=Receipt(native_id="1")))


def keeping(opened: OpenStore, home: Path, clock: ManualClock, *, days: int) -> Retention:
    return Retention(
        store=opened.store,
        files=opened.readers.files,
        media=folder_in(home),
        clock=clock,
        days=days,
    )


@requirement("store.retention")
async def test_old_events_and_files_go_and_those_of_open_work_stay(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_store(tmp_path / "state.db", clock=clock) as opened:
        retention = keeping(opened, tmp_path, clock, days=30)
        await send_file(opened, tmp_path, "out-sent", number=1)
        await deliver(opened, clock)
        await send_file(opened, tmp_path, "out-open", number=2)
        for n in range(3):
            await opened.store.accept(Accept(event=message("hi", n=n), lane=Lane.TURN))
            clock.advance(DAY)
        newest = await opened.readers.events.head()
        clock.advance(28.5 * DAY)
        await send_file(opened, tmp_path, "out-young", number=3)

        await retention.look()

        page = await opened.readers.events.after(Cursor(1), limit=10)
        view = await opened.readers.conversations.find(chat().session_key)
        assert view is not None
        said = await opened.readers.conversations.messages(view.session, limit=10)

    assert in_media(tmp_path) == {"out-open", "out-young"}
    # Of three days, two are older than thirty.
    assert [event.cursor for event in page.events] == [newest]
    assert page.gap is not None
    assert [each.text for each in said] == ["hi"] * 3


@requirement("store.retention")
async def test_zero_days_keep_everything_a_row_names(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_store(tmp_path / "state.db", clock=clock) as opened:
        await send_file(opened, tmp_path, "out-sent", number=1)
        await deliver(opened, clock)
        await opened.store.accept(Accept(event=message("hi", n=1), lane=Lane.TURN))
        clock.advance(9_000 * DAY)
        await keeping(opened, tmp_path, clock, days=0).look()

        first = await opened.readers.events.after(Cursor(0), limit=9)

    assert in_media(tmp_path) == {"out-sent"}
    assert first.gap is None


async def test_a_file_no_row_names_goes_after_a_while_and_no_stranger_does(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_store(tmp_path / "state.db", clock=clock) as opened:
        retention = keeping(opened, tmp_path, clock, days=0)
        for name in ("out-stray", "in-1-abc.pdf", "somebody else's.txt"):
            write(tmp_path, name)
        (tmp_path / "media" / "out-fresh").write_text("x")

        await retention.look()

    # What was written by the clock of the disk is younger than the clock of the test.
    assert in_media(tmp_path) == {"somebody else's.txt", "out-fresh"}


async def test_a_disk_that_refuses_is_met_again_the_next_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    async with open_store(tmp_path / "state.db", clock=clock) as opened:
        retention = keeping(opened, tmp_path, clock, days=0)
        (tmp_path / "media").rmdir()

        await retention.look()

    assert "nothing was pruned" in caplog.text
