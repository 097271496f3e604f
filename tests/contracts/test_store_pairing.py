"""What a store promises about letting strangers in by a code."""

from datetime import timedelta

import pytest

from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.ids import Actor
from gateway.domain.operations.pairing import (
    ApprovePairing,
    HashedCode,
    MissPairing,
    OfferPairing,
    Pairing,
    PairingState,
    RevokePairing,
)
from store import OpenStore
from tests.contracts.values import BEN, CARA, HOME, sending
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

SHELL = Actor(platform="cli", id="1000")
WORDS = (Part(kind=DeliveryKind.TEXT, body="your code"),)


def offer(clock: ManualClock, user: Actor = BEN, *, most_pending: int = 9) -> OfferPairing:
    return OfferPairing(
        place=HOME,
        user=user,
        code=HashedCode(hash="aa", salt="bb"),
        expires_at=clock.now() + timedelta(hours=1),
        not_since=clock.now() - timedelta(minutes=10),
        most_pending=most_pending,
        parts=WORDS,
    )


async def pending(opened: OpenStore) -> list[Pairing]:
    return list(await opened.readers.pairings.page(PairingState.PENDING, limit=9))


@requirement("access.pairing.code")
async def test_a_code_is_kept_and_told_in_one_go_and_again_only_after_a_while(
    opened: OpenStore, clock: ManualClock
) -> None:
    assert await opened.store.offer_pairing(offer(clock))
    assert not await opened.store.offer_pairing(offer(clock))
    told = await opened.store.claim_delivery(sending())
    assert told is not None
    assert told.body == "your code"

    clock.advance(601)
    assert await opened.store.offer_pairing(offer(clock))
    assert len(await pending(opened)) == 1


async def test_a_crowd_of_strangers_gets_no_more_codes_than_its_account_keeps(
    opened: OpenStore, clock: ManualClock
) -> None:
    assert await opened.store.offer_pairing(offer(clock, most_pending=1))
    assert not await opened.store.offer_pairing(offer(clock, CARA, most_pending=1))


@requirement("access.pairing.code")
async def test_a_code_lets_in_once_and_its_hash_is_gone_and_it_is_in_the_books(
    opened: OpenStore, clock: ManualClock
) -> None:
    await opened.store.offer_pairing(offer(clock))
    (waiting,) = await pending(opened)
    approve = ApprovePairing(pairing=waiting.id, by=SHELL, parts=WORDS)

    done = await opened.store.approve_pairing(approve)

    assert done is not None
    assert (done.state, done.code, str(done.decided_by)) == (
        PairingState.APPROVED,
        None,
        "cli:1000",
    )
    assert await opened.store.approve_pairing(approve) is None
    clock.advance(9_999)
    assert not await opened.store.offer_pairing(offer(clock))
    revoked = await opened.store.revoke_pairing(RevokePairing(pairing=waiting.id, by=SHELL))
    assert revoked is not None
    assert await opened.store.revoke_pairing(RevokePairing(pairing=waiting.id, by=SHELL)) is None
    lines = await opened.readers.books.audit(limit=9)
    assert [(line.action, line.subject) for line in lines] == [
        ("unpair", "telegram:2"),
        ("pair", "telegram:2"),
    ]


@requirement("access.pairing.code")
async def test_a_code_is_worth_nothing_after_its_hour(
    opened: OpenStore, clock: ManualClock
) -> None:
    await opened.store.offer_pairing(offer(clock))
    (waiting,) = await pending(opened)
    clock.advance(3_600)
    approve = ApprovePairing(pairing=waiting.id, by=SHELL)
    assert await opened.store.approve_pairing(approve) is None


async def test_five_wrong_codes_end_those_that_wait_on_the_platform_tried(
    opened: OpenStore, clock: ManualClock
) -> None:
    await opened.store.offer_pairing(offer(clock))
    for _ in range(5):
        await opened.store.miss_pairing(MissPairing(platform="slack"))
    for _ in range(4):
        await opened.store.miss_pairing(MissPairing(platform="telegram"))
    assert len(await pending(opened)) == 1
    await opened.store.miss_pairing(MissPairing())
    assert await pending(opened) == []
