"""What 10,000 messages a second of an outsider cost an owner: the wait for the store, beside none.

The way in is the running gateway's own, from the door to the commit; a platform's library is not
part of it. The floor is the same owner with nobody else writing.
"""

import asyncio
import itertools
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.report import emit, median, percentile
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.message import InboundMessage
from gateway.runtime.access import Access
from gateway.runtime.access_door import Door
from gateway.runtime.clock import SystemClock
from gateway.runtime.config import AccessConfig, RateConfig
from gateway.runtime.runtime import Edges, Runtime, RuntimeConfig
from store import open_store
from tests.fakes.model import ScriptedModel
from tests.fakes.tools import FakeTools

PLATFORM: Final = "loop"
OWNER: Final = Actor(platform=PLATFORM, id="1")
OUTSIDER: Final = Actor(platform=PLATFORM, id="666")
SECONDS: Final = 3.0
PER_SECOND: Final = 10_000
STEP_SECONDS: Final = 0.01
OWNER_STEP_SECONDS: Final = 0.02
GOAL_P95_MS: Final = 200.0

_numbers = itertools.count(1)


def message(sender: Actor) -> InboundMessage:
    number = next(_numbers)
    return InboundMessage(
        place=Place(platform=PLATFORM, chat=sender.id, chat_type=ChatType.DM),
        native_id=str(number),
        dedupe=f"{PLATFORM}::{number}",
        sender=sender,
        sent_at=datetime.now(UTC),
        text="hello",
    )


@asynccontextmanager
async def gateway(folder: Path) -> AsyncGenerator[Runtime]:
    """Put a runtime together that takes messages and answers none: it is not run."""
    clock = SystemClock()
    async with open_store(folder / "state.db", clock=clock) as opened:
        yield Runtime(
            store=opened.store,
            readers=opened.readers,
            edges=Edges(provider=ScriptedModel(), host=FakeTools(), adapters=(), renderers={}),
            access=Access(
                AccessConfig(),
                doors={(PLATFORM, ""): Door(people=frozenset({OWNER.id}))},
            ),
            clock=clock,
            config=RuntimeConfig(rate=RateConfig(user_per_minute=0, chat_per_minute=0)),
        )


async def flood(runtime: Runtime, until: float) -> int:
    """Write as the outsider; return how many messages that were."""
    sent, began = 0, time.perf_counter()
    while (now := time.perf_counter()) < until:
        for _ in range(int((now - began) * PER_SECOND) - sent):
            await runtime.intake.emit(message(OUTSIDER))
            sent += 1
        await asyncio.sleep(STEP_SECONDS)
    return sent


async def owner(runtime: Runtime, until: float) -> list[float]:
    """Write as the owner; return how long each message took in ms."""
    waits: list[float] = []
    while time.perf_counter() < until:
        before = time.perf_counter()
        await runtime.intake.emit(message(OWNER))
        waits.append((time.perf_counter() - before) * 1000)
        await asyncio.sleep(OWNER_STEP_SECONDS)
    return waits


async def measured(folder: Path, *, flooded: bool) -> tuple[list[float], float]:
    """Return the owner's waits and the outsider's messages a second."""
    async with gateway(folder) as runtime:
        until = time.perf_counter() + SECONDS
        async with asyncio.TaskGroup() as tasks:
            waits = tasks.create_task(owner(runtime, until), name="owner")
            sent = tasks.create_task(flood(runtime, until), name="outsider") if flooded else None
    return waits.result(), (sent.result() if sent else 0) / SECONDS


def main() -> None:
    with tempfile.TemporaryDirectory() as alone, tempfile.TemporaryDirectory() as together:
        quiet, _ = asyncio.run(measured(Path(alone), flooded=False))
        waits, rate = asyncio.run(measured(Path(together), flooded=True))
    p95 = percentile(waits, 0.95)
    emit(
        {
            "name": "flood",
            "unit": "ms an owner's message",
            "ours": round(median(waits), 3),
            "floor": round(median(quiet), 3),
            "floor_is": "the same without a flood",
            "ratio": round(median(waits) / median(quiet), 2),
            "p95_ms": round(p95, 2),
            "spread": f"{rate:.0f} messages a second of the outsider",
            "goal": f"p95 <= {GOAL_P95_MS:g} ms",
            "met": p95 <= GOAL_P95_MS and rate >= PER_SECOND * 0.95,
        }
    )


if __name__ == "__main__":
    main()
