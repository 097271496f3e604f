"""What a store promises about the message that stands for a reply: it goes when the reply is there."""

from datetime import timedelta

import pytest

from gateway.domain.delivery import Delivery, Later, Origin, Receipt, Sent, Unsure
from gateway.domain.ids import TurnId
from gateway.domain.operations.deliveries import Enqueue, ParkChat
from gateway.domain.operations.turns import Claim
from gateway.domain.preview import is_preview, preview_key
from store import OpenStore
from tests.contracts.values import GROUP, HOME, commit, message, sending, text
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


async def claimed(opened: OpenStore) -> Claim:
    await opened.store.accept(message("hello"))
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    return claim


async def shown(opened: OpenStore, turn: TurnId) -> None:
    """Put what stands for the reply of a turn into the outbox."""
    await opened.store.enqueue(
        Enqueue(
            place=HOME,
            group_key=preview_key(turn),
            parts=(text("fir"),),
            origin=Origin.NOTICE,
        )
    )


async def taken(opened: OpenStore) -> Delivery | None:
    return await opened.store.claim_delivery(sending())


async def sent(opened: OpenStore, delivery: Delivery, native_id: str) -> None:
    await opened.store.mark_delivery(Sent(id=delivery.id, receipt=Receipt(native_id=native_id)))


async def states(opened: OpenStore, turn: TurnId) -> list[str]:
    return [item.state for item in await opened.readers.deliveries.group(preview_key(turn))]


async def test_it_is_taken_away_after_all_of_the_reply_was_sent(opened: OpenStore) -> None:
    claim = await claimed(opened)
    await shown(opened, claim.turn)
    preview = await taken(opened)
    assert preview is not None
    await sent(opened, preview, "p")

    await opened.store.commit_turn(commit(claim, "first words"))

    reply = await taken(opened)
    assert reply is not None
    assert (await taken(opened), is_preview(preview), is_preview(reply)) == (None, True, False)
    assert await opened.readers.deliveries.next_at("telegram", "") is None
    await sent(opened, reply, "r")
    removal = await taken(opened)
    assert removal is not None
    assert (reply.body, removal.body, removal.edits) == ("first words", "", "p")
    await sent(opened, removal, "p")
    assert await taken(opened) is None


async def test_one_that_was_not_sent_by_then_is_never_sent(opened: OpenStore) -> None:
    claim = await claimed(opened)
    await shown(opened, claim.turn)

    await opened.store.commit_turn(commit(claim, "all"))

    reply = await taken(opened)
    assert reply is not None
    await sent(opened, reply, "r")
    assert (reply.body, await taken(opened)) == ("all", None)
    assert await states(opened, claim.turn) == ["dead"]


async def test_one_that_was_refused_for_now_is_dropped_and_the_chat_left_alone(
    opened: OpenStore, clock: ManualClock
) -> None:
    claim = await claimed(opened)
    await shown(opened, claim.turn)
    preview = await taken(opened)
    assert preview is not None
    await opened.store.commit_turn(commit(claim, "all"))

    at = clock.now() + timedelta(seconds=30)
    await opened.store.mark_delivery(Later(id=preview.id, at=at, error="slow", park_chat=True))

    assert await taken(opened) is None
    clock.advance(30)
    reply = await taken(opened)
    assert reply is not None
    await sent(opened, reply, "r")
    assert (reply.body, await taken(opened)) == ("all", None)
    assert await opened.readers.deliveries.next_at("telegram", "") is None


async def test_one_whose_answer_was_lost_is_taken_away_once_it_is_found(opened: OpenStore) -> None:
    claim = await claimed(opened)
    await shown(opened, claim.turn)
    preview = await taken(opened)
    assert preview is not None
    await opened.store.mark_delivery(Unsure(id=preview.id, error="no answer"))
    await opened.store.commit_turn(commit(claim, "all"))
    assert await taken(opened) is None

    await sent(opened, preview, "p")

    bodies: list[tuple[str, str | None]] = []
    while (delivery := await taken(opened)) is not None:
        bodies.append((delivery.body, delivery.edits))
        await sent(opened, delivery, "n")
    assert bodies == [("all", None), ("", "p")]


async def test_a_turn_that_goes_on_finds_what_already_stands_for_its_reply(
    opened: OpenStore,
) -> None:
    claim = await claimed(opened)
    await shown(opened, claim.turn)
    preview = await taken(opened)
    assert preview is not None
    await sent(opened, preview, "p")

    await shown(opened, claim.turn)

    assert await taken(opened) is None
    [status] = await opened.readers.deliveries.group(preview_key(claim.turn))
    assert (status.state, status.native_id) == ("sent", "p")


async def test_a_chat_that_is_to_be_left_alone_gets_nothing_until_then(
    opened: OpenStore, clock: ManualClock
) -> None:
    late = clock.now() + timedelta(seconds=60)
    await opened.store.park_chat(ParkChat(place=HOME, until=late))
    await opened.store.park_chat(ParkChat(place=HOME, until=clock.now() + timedelta(seconds=5)))
    for place in (HOME, GROUP):
        await opened.store.enqueue(
            Enqueue(
                place=place,
                group_key=f"k:{place.chat}",
                parts=(text(place.chat),),
                origin=Origin.SEND,
            )
        )

    clock.advance(30)
    during = [item.body for _ in range(3) if (item := await taken(opened)) is not None]
    clock.advance(30)
    after = await taken(opened)

    assert during == [GROUP.chat]
    assert after is not None
    assert after.body == HOME.chat
