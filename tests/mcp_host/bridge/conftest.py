from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from store.readers import OpenReaders, open_readers
from tests.mcp_host.bridge.bridging import Caller, Listening, bridge_over, calling
from tests.store.rows import Rows, open_rows
from tests.support.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def rows(tmp_path: Path) -> Generator[Rows]:
    with open_rows(tmp_path / "state.db") as opened:
        yield opened


@pytest.fixture
async def readers(tmp_path: Path, rows: Rows, clock: ManualClock) -> AsyncGenerator[OpenReaders]:
    async with open_readers(tmp_path / "state.db", clock=clock) as opened:
        yield opened


@pytest.fixture
def gateway() -> Listening:
    return Listening()


@pytest.fixture
async def caller(
    tmp_path: Path, readers: OpenReaders, gateway: Listening
) -> AsyncGenerator[Caller]:
    async with calling(bridge_over(readers, tmp_path, gateway=gateway)) as connected:
        yield connected
