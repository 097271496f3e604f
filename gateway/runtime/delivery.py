"""Empties one account's outbox through its adapter. Each send has a row that says so before it is made."""

import asyncio
import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from gateway.domain.delivery import (
    Dead,
    Delivery,
    DeliveryKind,
    Later,
    Mark,
    Outcome,
    Receipt,
    Sent,
    Unsure,
)
from gateway.domain.errors import (
    AdapterUnauthorized,
    DeliveryDeferred,
    DeliveryRejected,
    DeliveryUnsure,
)
from gateway.domain.operations.deliveries import ClaimDelivery
from gateway.domain.preview import is_preview
from gateway.ports import Adapter, Clock, Deliveries, DeliveryStore
from gateway.runtime.persist import persist
from gateway.runtime.wakeups import Bell, Wakeups
from gateway.telemetry.context import bind
from gateway.telemetry.faults import FaultPoint, reach

logger = logging.getLogger(__name__)

MAX_SENDS: Final = 8
"""Calls of one account under way at a time; the store keeps the order within a conversation."""
MAX_SETTLINGS: Final = MAX_SENDS // 2
"""Of these calls, for what an earlier process left open; the others are always free to send."""
SEND_SECONDS: Final = 90.0
"""For one call of an adapter; after that its outcome counts as unknown."""
SLOWEST_UPLOAD: Final = 100_000
"""Bytes a second at which a file still goes out: a call that takes files along gets that longer."""
LEASE_SECONDS: Final = 120.0
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
JITTER: Final = 0.3
"""A pause after a failure is longer by up to this part of it."""
BLOCKED_SECONDS: Final = 1.0
SHORTEST_WAIT_SECONDS: Final = 0.02
MAX_UNSURE_ATTEMPTS: Final = 6
"""Sends without any answer before a delivery is given up; each may have arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a send of each kind takes from a chat, in milliseconds; nothing by default."""

    cost_ms: Mapping[DeliveryKind, int] = field(default_factory=dict[DeliveryKind, int])
    burst_ms: int = 0


class DeliveryLoop:
    """Sends what is due on one account, oldest first."""

    def __init__(
        self,
        *,
        adapter: Adapter,
        store: DeliveryStore,
        deliveries: Deliveries,
        wakeups: Wakeups,
        clock: Clock,
        worker: str,
        budget: Budget | None = None,
        send_seconds: float = SEND_SECONDS,
    ) -> None:
        self._adapter = adapter
        self._store = store
        self._deliveries = deliveries
        self._wakeups = wakeups
        self._clock = clock
        self._worker = worker
        self._budget = budget or Budget()
        self._slots = asyncio.Semaphore(MAX_SENDS)
        self._send_seconds = send_seconds
        self._under_way = 0
        # What is enqueued is due at once and rings; only these may become due by time alone.
        self._some_later = True
        # Unless it is for a chat that is to be left alone.
        self._rung_for_nothing = False
        self._leaving = False

    def shut_down(self) -> None:
        """Let `run` return once nothing is due any more."""
        self._leaving = True
        self._wakeups.deliveries()

    async def run(self) -> None:
        """Send what is due until shut down or cancelled; settle beside it what was left open.

        What is not settled by then stays as it is: the next start settles it.
        """
        with self._wakeups.delivery_bell() as bell:
            async with asyncio.TaskGroup() as tasks:
                settling = await self._settle_left_open(tasks, bell)
                await self._send_due(tasks, bell)
                for task in settling:
                    task.cancel()

    async def _settle_left_open(
        self, tasks: asyncio.TaskGroup, bell: Bell
    ) -> list[asyncio.Task[None]]:
        """Begin to settle what an earlier process left open; the store claims nothing behind it."""
        account = self._adapter.platform, self._adapter.account
        left = await persist(lambda: self._deliveries.unsure(*account), clock=self._clock)
        places = asyncio.Semaphore(MAX_SETTLINGS)
        started: list[asyncio.Task[None]] = []
        for delivery in left:
            # Counted before it has a slot: one that becomes due later may not be overlooked.
            self._under_way += 1
            with bind(conversation=delivery.place.session_key):
                task = tasks.create_task(
                    self._settle(delivery, places, bell), name=f"settling:{delivery.id}"
                )
            started.append(task)
        return started

    async def _settle(self, delivery: Delivery, places: asyncio.Semaphore, bell: Bell) -> None:
        try:
            async with places, self._slots:
                await self._mark(await self._settled(delivery))
        except Exception:
            # One send never ends the others. Its row still says `uncertain`: the next start settles it.
            logger.exception("what became of delivery %d is not recorded", delivery.id)
        finally:
            self._under_way -= 1
            # The next one of this conversation may go now.
            bell.ring()

    async def _send_due(self, sends: asyncio.TaskGroup, bell: Bell) -> None:
        while True:
            await self._slots.acquire()
            delivery = await self._claim()
            if delivery is not None:
                self._rung_for_nothing = False
                self._under_way += 1
                with bind(conversation=delivery.place.session_key):
                    sends.create_task(self._send(delivery, bell), name=f"delivery:{delivery.id}")
                continue
            self._slots.release()
            if self._leaving:
                return
            await self._wait(bell)

    async def _claim(self) -> Delivery | None:
        claim = ClaimDelivery(
            platform=self._adapter.platform,
            account=self._adapter.account,
            worker=self._worker,
            lease_until=self._clock.now() + timedelta(seconds=LEASE_SECONDS),
            cost_ms=self._budget.cost_ms,
            burst_ms=self._budget.burst_ms,
        )
        return await persist(lambda: self._store.claim_delivery(claim), clock=self._clock)

    async def _wait(self, bell: Bell) -> None:
        """Return at a ring, or when the next delivery may be tried."""
        if self._under_way:
            # What waits for one of them is told by its end; a pause of another chat can be late.
            await bell.wait_until(self._after(BLOCKED_SECONDS), clock=self._clock)
            return
        rung, self._rung_for_nothing = self._rung_for_nothing, True
        if not (self._some_later or rung):
            await bell.wait()
            return
        account = self._adapter.platform, self._adapter.account
        due = await persist(lambda: self._deliveries.next_at(*account), clock=self._clock)
        self._some_later = due is not None or self._budget.burst_ms > 0
        if due is not None:
            due = max(due, self._after(SHORTEST_WAIT_SECONDS))
        await bell.wait_until(due, clock=self._clock)

    async def _send(self, delivery: Delivery, bell: Bell) -> None:
        try:
            await self._mark(await self._sent(delivery))
            await reach(FaultPoint.DELIVERY_MARKED)
        except Exception:
            # One send never ends the others. Unless its row says `sent`, the next start settles it.
            logger.exception("what became of delivery %d is not recorded", delivery.id)
        finally:
            self._under_way -= 1
            self._slots.release()
            # The next one of this conversation may go now.
            bell.ring()

    async def _sent(self, delivery: Delivery) -> Outcome:
        seconds = self._send_seconds + _upload_seconds(delivery)
        try:
            async with asyncio.timeout(seconds):
                await reach(FaultPoint.DELIVERY_CLAIMED)
                receipt = await self._adapter.send(delivery)
                await reach(FaultPoint.DELIVERY_SENT)
        except TimeoutError:
            logger.warning("delivery %d: no answer within %g s", delivery.id, seconds)
            return await self._lost(delivery, "no answer in time")
        except DeliveryDeferred as error:
            at = self._after(error.retry_after)
            return _later(delivery, at, error=str(error), park_chat=True)
        except DeliveryRejected as error:
            logger.error("delivery %d is given up: %s", delivery.id, error)
            return Dead(id=delivery.id, error=str(error))
        except AdapterUnauthorized as error:
            logger.warning("delivery %d waits: %s", delivery.id, error)
            at = self._after(LONGEST_WAIT_SECONDS)
            return _later(delivery, at, error=str(error))
        except DeliveryUnsure as error:
            logger.warning("delivery %d: %s", delivery.id, error)
            return await self._lost(delivery, str(error))
        except Exception as error:
            logger.exception("delivery %d failed", delivery.id)
            return await self._lost(delivery, type(error).__name__)
        return Sent(id=delivery.id, receipt=_with(receipt, delivery.marks))

    async def _lost(self, delivery: Delivery, error: str) -> Outcome:
        await self._mark(Unsure(id=delivery.id, error=error))
        return await self._settled(delivery)

    async def _settled(self, delivery: Delivery) -> Outcome:
        """Find out what became of a send; unless it certainly did not arrive, a repeat is marked."""
        marks = frozenset[Mark]()
        try:
            async with asyncio.timeout(self._send_seconds):
                receipt = await self._adapter.settle_unsure(delivery)
        except (DeliveryUnsure, TimeoutError) as error:
            receipt = None
            marks = frozenset({Mark.REPEAT})
            logger.warning("delivery %d may be repeated: %s", delivery.id, error)
        except Exception:
            receipt = None
            marks = frozenset({Mark.REPEAT})
            logger.exception("delivery %d may be repeated", delivery.id)
        if receipt is not None:
            return Sent(id=delivery.id, receipt=_with(receipt, delivery.marks))
        if marks and is_preview(delivery):
            return Dead(id=delivery.id, error="it may be shown already")
        if delivery.attempt >= MAX_UNSURE_ATTEMPTS:
            logger.error("delivery %d is given up after %d sends", delivery.id, delivery.attempt)
            return Dead(id=delivery.id, error=f"no answer to {delivery.attempt} sends")
        at = self._after(_backoff(delivery.attempt))
        return _later(delivery, at, error="no answer", marks=marks)

    async def _mark(self, outcome: Outcome) -> None:
        self._some_later |= isinstance(outcome, Later)
        await persist(lambda: self._store.mark_delivery(outcome), clock=self._clock)
        if isinstance(outcome, Dead):
            # It may have been a card: its question has ended with it.
            self._wakeups.any_settled()

    def _after(self, seconds: float) -> datetime:
        return self._clock.now() + timedelta(seconds=seconds)


def _upload_seconds(delivery: Delivery) -> float:
    return sum(file.size or 0 for file in delivery.files) / SLOWEST_UPLOAD


def _later(
    delivery: Delivery,
    at: datetime,
    *,
    error: str,
    park_chat: bool = False,
    marks: frozenset[Mark] = frozenset(),
) -> Later:
    """Return that a delivery is tried again; a mark it has is never lost."""
    return Later(
        id=delivery.id, at=at, error=error, park_chat=park_chat, marks=delivery.marks | marks
    )


def _with(receipt: Receipt, marks: frozenset[Mark]) -> Receipt:
    return Receipt(native_id=receipt.native_id, marks=receipt.marks | marks)


def _backoff(attempt: int) -> float:
    seconds = min(FIRST_WAIT_SECONDS * 2.0 ** max(attempt - 1, 0), LONGEST_WAIT_SECONDS)
    # What failed at one moment, in many chats, is not tried again at one moment.
    return seconds * random.uniform(1.0, 1.0 + JITTER)  # noqa: S311 - nothing secret
