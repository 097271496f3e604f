"""A reply and its way out: both are there or neither is, and it is done once the platform has it."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.domain.delivery import Dead, Later, Receipt, Sent, Unsure
from gateway.domain.errors import StoreError
from gateway.domain.operations.turns import Claim
from store import OpenStore, open_store
from tests.contracts.values import HOME, commit, message, sending
from tests.fakes.house import rows
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

REPLIES = "SELECT body FROM message WHERE role = 'assistant'"
STATES = "SELECT state, native_id FROM delivery ORDER BY id"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def opened(tmp_path: Path, clock: ManualClock) -> AsyncGenerator[OpenStore]:
    async with open_store(tmp_path / "state.db", clock=clock) as store:
        yield store


async def working(opened: OpenStore) -> Claim:
    await opened.store.accept(message("go"))
    claim = await opened.store.claim_turn(worker="w")
    assert claim is not None
    return claim


def change(path: Path, statement: str) -> None:
    """Change the database as nothing of ours does."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(statement)


@requirement("delivery.outbox_transaction")
@pytest.mark.parametrize("table", ["delivery", "message", "event"])
async def test_a_reply_whose_storing_breaks_off_half_way_leaves_nothing_behind(
    opened: OpenStore, tmp_path: Path, table: str
) -> None:
    claim = await working(opened)
    path = tmp_path / "state.db"
    head = await opened.readers.events.head()
    change(
        path,
        f"CREATE TRIGGER broken AFTER INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END",
    )

    with pytest.raises(StoreError):
        await opened.store.commit_turn(commit(claim, "answer"))

    assert rows(path, REPLIES) == []
    assert rows(path, STATES) == []
    assert await opened.readers.events.head() == head
    assert rows(path, "SELECT state FROM turn") == [("running",)]

    change(path, "DROP TRIGGER broken")
    await opened.store.commit_turn(commit(claim, "answer"))
    assert rows(path, REPLIES) == [("answer",)]
    assert rows(path, STATES) == [("ready", None)]


@requirement("delivery.outbox_transaction")
async def test_a_delivery_is_done_only_once_the_platform_gave_its_id(
    opened: OpenStore, tmp_path: Path, clock: ManualClock
) -> None:
    path = tmp_path / "state.db"
    await opened.store.commit_turn(commit(await working(opened), "answer"))
    delivery = await opened.store.claim_delivery(sending())
    assert delivery is not None
    assert delivery.place == HOME
    states = [rows(path, STATES)]
    for outcome in (
        Unsure(id=delivery.id, error="no answer"),
        Later(id=delivery.id, at=clock.now(), error="try again", park_chat=False),
    ):
        await opened.store.mark_delivery(outcome)
        states.append(rows(path, STATES))
    assert await opened.store.claim_delivery(sending()) is not None
    await opened.store.mark_delivery(Sent(id=delivery.id, receipt=Receipt(native_id="77")))
    await opened.store.mark_delivery(Dead(id=delivery.id, error="too late"))

    assert states == [[("sending", None)], [("uncertain", None)], [("ready", None)]]
    assert rows(path, STATES) == [("sent", "77")]
    with pytest.raises(sqlite3.IntegrityError):
        change(path, "UPDATE delivery SET native_id = NULL")


@requirement("delivery.outbox_transaction")
def test_nothing_is_no_id_of_a_platform() -> None:
    with pytest.raises(ValueError, match="id"):
        Receipt(native_id="")
