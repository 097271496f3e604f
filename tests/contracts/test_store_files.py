from datetime import timedelta

import pytest

from gateway.domain.delivery import DeliveryKind, Origin, Part, Receipt, Sent
from gateway.domain.files import FileState
from gateway.domain.ids import MessageId
from gateway.domain.message import Attachment, AttachmentKind
from gateway.domain.operations.deliveries import Enqueue
from gateway.domain.operations.files import SettleFile
from gateway.domain.operations.inbound import Accepted
from gateway.domain.operations.upkeep import Prune
from store import OpenStore
from tests.contracts.values import GROUP, HOME, deleted, message, sending, text
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio

PHOTO = Attachment(kind=AttachmentKind.IMAGE, media_type="image/png", name="a.png", ref="f1")
SOUND = Attachment(kind=AttachmentKind.VOICE, media_type="audio/ogg", name="v.ogg", ref="f2")
KEPT = Attachment(
    kind=AttachmentKind.FILE,
    media_type="text/plain",
    name="notes.txt",
    size=5,
    key="out-1.txt",
    sha256="ab",
    state=FileState.STORED,
)


async def given(opened: OpenStore, *files: Attachment, native_id: str = "m1") -> MessageId:
    accepted = await opened.store.accept(message("look", native_id=native_id, attachments=files))
    assert isinstance(accepted, Accepted)
    assert accepted.message is not None
    return accepted.message


async def test_the_files_of_a_message_are_awaited_in_their_order(opened: OpenStore) -> None:
    found = await given(opened, PHOTO, SOUND)

    pending = await opened.readers.files.pending()

    assert [(item.file.ref, item.message, item.place) for item in pending] == [
        ("f1", found, HOME),
        ("f2", found, HOME),
    ]
    rest = await opened.readers.files.pending(after=pending[0].file.id)
    assert [item.file.ref for item in rest] == ["f2"]


async def test_a_file_that_is_here_says_where_and_is_awaited_no_more(opened: OpenStore) -> None:
    found = await given(opened, PHOTO)
    (item,) = await opened.readers.files.pending()
    assert item.file.id is not None
    here = SettleFile(
        file=item.file.id, state=FileState.STORED, key="in-1.png", size=7, sha256="cd"
    )

    assert await opened.store.settle_file(here)
    assert not await opened.store.settle_file(here)

    assert await opened.readers.files.pending() == ()
    (kept,) = (await opened.readers.files.of([found]))[found]
    assert (kept.state, kept.key, kept.size, kept.sha256) == (
        FileState.STORED,
        "in-1.png",
        7,
        "cd",
    )


async def test_a_file_that_never_comes_is_told_of_once_and_in_the_same_commit(
    opened: OpenStore,
) -> None:
    found = await given(opened, PHOTO)
    (item,) = await opened.readers.files.pending()
    assert item.file.id is not None
    lost = SettleFile(
        file=item.file.id,
        state=FileState.REFUSED,
        problem="it is too large",
        notice=Enqueue(place=HOME, group_key="file:1", parts=(text("no"),), origin=Origin.NOTICE),
    )

    await opened.store.settle_file(lost)
    await opened.store.settle_file(lost)

    (told,) = await opened.readers.deliveries.group("file:1")
    assert told.state == "ready"
    (file,) = (await opened.readers.files.of([found]))[found]
    assert (file.state, file.problem) == (FileState.REFUSED, "it is too large")


async def test_a_file_of_a_message_that_was_taken_back_is_not_awaited(opened: OpenStore) -> None:
    await given(opened, PHOTO, native_id="gone")
    await opened.store.accept(deleted("gone"))

    assert await opened.readers.files.pending() == ()


async def test_files_go_out_with_their_delivery_and_belong_to_its_message(
    opened: OpenStore,
) -> None:
    part = Part(kind=DeliveryKind.FILE, body="here", files=(KEPT, KEPT))
    asked = Enqueue(place=HOME, group_key="g", parts=(part,), origin=Origin.SEND, note="here")
    await opened.store.enqueue(asked)

    delivery = await opened.store.claim_delivery(sending())

    assert delivery is not None
    assert [(file.key, file.name, file.size) for file in delivery.files] == [
        ("out-1.txt", "notes.txt", 5)
    ] * 2
    assert delivery.message is not None
    assert len((await opened.readers.files.of([delivery.message]))[delivery.message]) == 2
    assert await opened.readers.files.pending() == ()


async def test_a_send_of_unknown_outcome_still_has_its_files(opened: OpenStore) -> None:
    part = Part(kind=DeliveryKind.FILE, body="", files=(KEPT,))
    await opened.store.enqueue(
        Enqueue(place=HOME, group_key="g", parts=(part,), origin=Origin.SEND)
    )
    await opened.store.claim_delivery(sending())
    await opened.store.recover(worker="w")

    (left,) = await opened.readers.deliveries.unsure("telegram", "")

    assert [file.key for file in left.files] == ["out-1.txt"]


async def test_files_that_are_still_to_be_sent_outlive_retention(
    opened: OpenStore, clock: ManualClock
) -> None:
    part = Part(kind=DeliveryKind.FILE, body="", files=(KEPT,))
    await opened.store.enqueue(
        Enqueue(place=HOME, group_key="g", parts=(part,), origin=Origin.SEND)
    )
    clock.advance(timedelta(days=9).total_seconds())
    before = clock.now() - timedelta(days=1)

    early = await opened.store.prune(Prune(media_before=before))
    delivery = await opened.store.claim_delivery(sending())
    assert delivery is not None
    await opened.store.mark_delivery(Sent(id=delivery.id, receipt=Receipt(native_id="1")))
    late = await opened.store.prune(Prune(media_before=before))

    assert (early.media_paths, late.media_paths) == ((), ("out-1.txt",))


async def test_what_files_take_is_known_of_a_conversation_and_of_all(opened: OpenStore) -> None:
    for place, name in ((HOME, "a"), (GROUP, "b")):
        part = Part(kind=DeliveryKind.FILE, body="", files=(KEPT,))
        await opened.store.enqueue(
            Enqueue(place=place, group_key=name, parts=(part,), origin=Origin.SEND, note=name)
        )

    room = await opened.readers.files.room(HOME)

    assert (room.conversation, room.everything) == (5, 10)
    assert await opened.readers.files.unknown(["out-1.txt", "out-2.txt"]) == ["out-2.txt"]
