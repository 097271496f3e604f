"""A power cut keeps what was synced, and of the rest whatever part it likes.

The store runs in a process of its own on a disk that is modelled below SQLite (`lossy_disk`): at
random file operations, also in the middle of a commit or a checkpoint, it saves what would be left
and what had been acknowledged by then. Proven is that the store asks for every sync it needs before
it acknowledges. Not proven is that this machine's kernel and drive keep a sync they confirm: the
control with a disk that lies shows that nothing above it could.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.domain.errors import StoreBroken
from gateway.domain.ids import SessionId
from gateway.ports import Readers
from store import open_store
from tests.store.samples import accept_text
from tests.support.clock import ManualClock
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

PAGE = 100


async def cuts_of(folder: Path, *, seed: int, disk: str) -> list[Path]:
    """Run the program until its power goes; return the folders of its cuts."""
    async with open_store(folder / "state.db", clock=ManualClock()) as opened:
        await opened.store.accept(accept_text("before", dedupe="before"))
    return await asyncio.to_thread(_run, folder, seed, disk)


def _run(folder: Path, seed: int, disk: str) -> list[Path]:
    subprocess.run(
        [sys.executable, "-m", "tests.store.faults.power_cut", str(folder), str(seed), disk],
        check=True,
        timeout=60,
    )
    return sorted(folder.glob("cut-*"))


async def texts(readers: Readers) -> list[str]:
    """Return all messages of the only session, in order."""
    found: list[str] = []
    last = None
    while page := await readers.conversations.messages(SessionId(1), before=last, limit=PAGE):
        found = [message.text for message in page] + found
        last = page[0].id
    return found


async def what_is_lost(cut: Path) -> set[str]:
    """Open what a cut left, prove that it works on, and return what it lost."""
    acked: list[str] = json.loads((cut / "acked.json").read_text())
    async with open_store(cut / "state.db", clock=ManualClock()) as opened:
        await opened.store.accept(accept_text("after", dedupe="after"))
        kept = await texts(opened.readers)
    assert len(kept) == len(set(kept)), "nothing is there twice"
    assert (kept[0], kept[-1]) == ("before", "after")
    return set(acked) - set(kept)


@requirement("fault.f12")
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    cuts = await cuts_of(tmp_path, seed=seed, disk="honest")

    lost = [(cut.name, found) for cut in cuts if (found := await what_is_lost(cut))]

    assert len(cuts) > 10
    assert lost == [], f"seed {seed}"


@requirement("fault.f12")
async def test_the_proof_notices_a_disk_that_forgets_what_it_said_it_synced(
    tmp_path: Path,
) -> None:
    found = 0
    for cut in await cuts_of(tmp_path, seed=1, disk="lying"):
        try:
            found += bool(await what_is_lost(cut))
        except StoreBroken:
            found += 1

    assert found > 0
