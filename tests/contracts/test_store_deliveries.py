"""What a store promises about the outbox: in order, one at a time, said before it is sent."""

from datetime import timedelta

import pytest

from gateway.domain.conversation import Role
from gateway.domain.delivery import (
    Dead,
    Delivery,
    DeliveryKind,
    Later,
    Mark,
    Origin,
    Part,
    Receipt,
    Sent,
    Unsure,
)
from gateway.domain.ids import DeliveryId, Place
from gateway.domain.operations.deliveries import Enqueue, Enqueued
from gateway.domain.operations.inbound import Accepted
from store import OpenStore
from tests.contracts.values import GROUP, HOME, command, edit, sending, text
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


async def enqueue(
    opened: OpenStore, *bodies: str, place: Place = HOME, key: str = "", note: str = ""
) -> Enqueued:
    return await opened.store.enqueue(
        Enqueue(
            place=place,
            group_key=key or f"k:{bodies}",
            parts=tuple(text(body) for body in bodies),
            origin=Origin.SEND,
            note=note,
        )
    )


async def claim(opened: OpenStore) -> Delivery | None:
    return await opened.store.claim_delivery(sending())


async def sent(opened: OpenStore, delivery: Delivery | None, native_id: str = "n") -> None:
    assert delivery is not None
    await opened.store.mark_delivery(Sent(id=delivery.id, receipt=Receipt(native_id=native_id)))


async def state(opened: OpenStore, key: str) -> list[str]:
    return [item.state for item in await opened.readers.deliveries.group(key)]


async def test_parts_go_out_one_after_the_other(opened: OpenStore) -> None:
    await enqueue(opened, "1", "2", key="k")

    first = await claim(opened)
    blocked = await claim(opened)
    await sent(opened, first)
    second = await claim(opened)

    assert first is not None
    assert second is not None
    assert (first.body, blocked, second.body) == ("1", None, "2")
    assert first.key != second.key
    assert await state(opened, "k") == ["sent", "sending"]


async def test_one_conversation_never_holds_up_another(opened: OpenStore) -> None:
    await enqueue(opened, "1", "2")
    await enqueue(opened, "other", place=GROUP)

    bodies = [delivery.body for _ in range(3) if (delivery := await claim(opened))]

    assert bodies == ["1", "other"]


async def test_the_same_group_key_is_enqueued_once(opened: OpenStore) -> None:
    first = await enqueue(opened, "1", "2", key="send:cli:abc", note="1 2")
    again = await enqueue(opened, "1", "2", key="send:cli:abc", note="1 2")

    assert not first.known
    assert again == Enqueued(ids=first.ids, known=True)
    view = await opened.readers.conversations.find(HOME.session_key)
    assert view is not None
    assert view.message_count == 1


async def test_a_note_is_a_message_of_the_conversation_and_an_event(opened: OpenStore) -> None:
    head = await opened.readers.events.head()

    await enqueue(opened, "news", note="news")

    view = await opened.readers.conversations.find(HOME.session_key)
    assert view is not None
    assert view.last_message is not None
    assert (view.last_message.role, view.last_message.text) == (Role.NOTE, "news")
    assert await opened.readers.events.head() > head


async def test_enqueueing_is_done_with_the_command_it_answers(opened: OpenStore) -> None:
    asked = await opened.store.accept(command("status"))
    assert isinstance(asked, Accepted)

    await opened.store.enqueue(
        Enqueue(
            place=HOME,
            group_key="command:1",
            parts=(text("fine"),),
            origin=Origin.COMMAND,
            inbound=asked.inbound,
        )
    )

    assert await opened.readers.inbox.controls() == ()


async def test_a_refusal_for_now_parks_the_chat_and_keeps_the_row(
    opened: OpenStore, clock: ManualClock
) -> None:
    await enqueue(opened, "1", key="k")
    await enqueue(opened, "other", place=GROUP)
    first = await claim(opened)
    assert first is not None
    at = clock.now() + timedelta(seconds=30)

    await opened.store.mark_delivery(
        Later(id=first.id, at=at, error="slow down", park_chat=True, marks=frozenset({Mark.PLAIN}))
    )

    await enqueue(opened, "2", key="k2")
    during = [delivery.body for _ in range(3) if (delivery := await claim(opened))]
    clock.advance(30)
    after = await claim(opened)
    assert during == ["other"]
    assert after is not None
    assert (after.id, after.key, after.attempt) == (first.id, first.key, 2)
    assert after.marks == {Mark.PLAIN}


async def test_an_unsure_send_blocks_what_follows_until_it_is_settled(opened: OpenStore) -> None:
    await enqueue(opened, "1", "2", key="k")
    first = await claim(opened)
    assert first is not None

    await opened.store.mark_delivery(Unsure(id=first.id, error="no answer"))
    blocked = await claim(opened)
    unsure = await opened.readers.deliveries.unsure("telegram", "")
    await sent(opened, first, native_id="77")
    following = await claim(opened)

    assert blocked is None
    assert [delivery.id for delivery in unsure] == [first.id]
    assert following is not None
    assert following.body == "2"
    group = await opened.readers.deliveries.group("k")
    assert group[0].native_id == "77"


async def test_a_dead_delivery_lets_the_next_one_through(opened: OpenStore) -> None:
    await enqueue(opened, "1", "2", key="k")
    first = await claim(opened)
    assert first is not None

    await opened.store.mark_delivery(Dead(id=first.id, error="blocked"))
    await opened.store.mark_delivery(Sent(id=first.id, receipt=Receipt(native_id="1")))

    assert await state(opened, "k") == ["dead", "ready"]
    assert await claim(opened) is not None


async def test_what_is_sent_stays_sent(opened: OpenStore, clock: ManualClock) -> None:
    await enqueue(opened, "1", key="k")
    first = await claim(opened)
    assert first is not None
    await sent(opened, first)

    for outcome in (
        Unsure(id=first.id, error="late"),
        Dead(id=first.id, error="late"),
        Later(id=first.id, at=clock.now(), error="late", park_chat=True),
        Sent(id=first.id, receipt=Receipt(native_id="other")),
    ):
        await opened.store.mark_delivery(outcome)

    group = await opened.readers.deliveries.group("k")
    assert (group[0].state, group[0].native_id) == ("sent", "n")
    await enqueue(opened, "2")
    assert await claim(opened) is not None


async def edits(opened: OpenStore, target: DeliveryId, body: str, *, key: str = "") -> Enqueued:
    return await opened.store.enqueue(
        Enqueue(
            place=HOME,
            group_key=key or f"edit:{body}",
            parts=(edit(body),),
            origin=Origin.COMMAND,
            edits=target,
        )
    )


async def test_an_edit_waits_for_its_target_alone_and_the_newest_one_counts(
    opened: OpenStore,
) -> None:
    added = await enqueue(opened, "1", "2")
    await edits(opened, added.ids[0], "early")
    await edits(opened, added.ids[0], "latest")
    first = await claim(opened)

    before = await claim(opened)
    await sent(opened, first, native_id="55")
    after = {delivery.body: delivery for _ in range(3) if (delivery := await claim(opened))}

    assert before is None
    assert set(after) == {"2", "latest"}
    assert after["latest"].edits == "55"
    assert after["latest"].kind is DeliveryKind.EDIT


async def test_an_edit_under_way_is_never_overtaken_by_a_newer_one(opened: OpenStore) -> None:
    added = await enqueue(opened, "1")
    await sent(opened, await claim(opened))
    await edits(opened, added.ids[0], "older")
    older = await claim(opened)
    await edits(opened, added.ids[0], "newer")

    meanwhile = await claim(opened)
    await sent(opened, older)
    newer = await claim(opened)

    assert meanwhile is None
    assert newer is not None
    assert newer.body == "newer"


async def test_an_edit_that_would_be_tried_again_gives_way_to_a_newer_one(
    opened: OpenStore, clock: ManualClock
) -> None:
    added = await enqueue(opened, "1")
    await sent(opened, await claim(opened))
    await edits(opened, added.ids[0], "older", key="older")
    older = await claim(opened)
    assert older is not None
    await edits(opened, added.ids[0], "newer")

    at = clock.now() + timedelta(seconds=30)
    await opened.store.mark_delivery(Later(id=older.id, at=at, error="too many", park_chat=True))
    parked = await claim(opened)
    clock.advance(30)
    newer = await claim(opened)

    assert await state(opened, "older") == ["dead"]
    assert parked is None
    assert newer is not None
    assert newer.body == "newer"


async def test_a_repeated_edit_is_known(opened: OpenStore) -> None:
    added = await enqueue(opened, "1")

    first = await edits(opened, added.ids[0], "new", key="e")
    again = await edits(opened, added.ids[0], "new", key="e")

    assert (first.known, again.known) == (False, True)
    assert first.ids == again.ids


async def test_what_never_goes_out_is_not_edited(opened: OpenStore) -> None:
    added = await enqueue(opened, "1", key="k")
    await edits(opened, added.ids[0], "early", key="e")
    first = await claim(opened)
    assert first is not None
    await opened.store.mark_delivery(Dead(id=first.id, error="gone"))

    late = await edits(opened, added.ids[0], "late", key="l")

    assert late.ids == ()
    assert await state(opened, "e") == ["dead"]
    assert await claim(opened) is None


async def test_a_chat_spends_no_more_than_its_budget(opened: OpenStore, clock: ManualClock) -> None:
    request = sending(cost={DeliveryKind.TEXT: 1_000}, burst=1_000)
    for number in range(4):
        await enqueue(opened, f"{number}")
    went: list[int] = []

    for _ in range(4):
        while (delivery := await opened.store.claim_delivery(request)) is not None:
            await sent(opened, delivery)
            went.append(int((clock.now().timestamp() * 1000) % 1_000_000))
        clock.advance(1)

    first = went[0]
    assert [at - first for at in went] == [0, 0, 1_000, 2_000]


async def test_an_account_gets_only_its_own(opened: OpenStore) -> None:
    await enqueue(opened, "1")

    assert await opened.store.claim_delivery(sending(platform="slack")) is None


async def test_a_payload_comes_back_as_it_was(opened: OpenStore) -> None:
    part = Part(kind=DeliveryKind.TEXT, body="é", payload='{"silent":true}')
    await opened.store.enqueue(
        Enqueue(place=HOME, group_key="k", parts=(part,), origin=Origin.SEND)
    )

    delivery = await claim(opened)

    assert delivery is not None
    assert (delivery.body, delivery.payload) == ("é", '{"silent":true}')
