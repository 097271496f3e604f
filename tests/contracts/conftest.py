"""Every store passes the same suite: a factory per engine, and one open store per test."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from gateway.ports import Clock
from store import OpenStore, open_store
from tests.support.clock import ManualClock

StoreFactory: TypeAlias = Callable[[Path, Clock], AbstractAsyncContextManager[OpenStore]]
"""Opens the store that lives in a folder, which may hold one already."""


@asynccontextmanager
async def sqlite_store(folder: Path, clock: Clock) -> AsyncGenerator[OpenStore]:
    async with open_store(folder / "state.db", clock=clock) as opened:
        yield opened


@pytest.fixture(params=[sqlite_store], ids=["sqlite"])
def open_in(request: pytest.FixtureRequest) -> StoreFactory:
    factory: StoreFactory = request.param
    return factory


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def opened(
    open_in: StoreFactory, tmp_path: Path, clock: ManualClock
) -> AsyncGenerator[OpenStore]:
    async with open_in(tmp_path, clock) as store:
        yield store
