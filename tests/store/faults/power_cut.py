"""Accepts messages on a disk that forgets, and saves what power cuts at random moments would leave.

`python -m tests.store.faults.power_cut FOLDER SEED honest|lying`: FOLDER/state.db exists. Each
FOLDER/cut-N holds the files that would be left and `acked.json`, what had been acknowledged.
A lying disk says that the log is synced and forgets it.
"""

import asyncio
import json
import os
import random
import sys
from pathlib import Path
from typing import Final

from gateway.runtime.clock import SystemClock
from store import open_store
from tests.store.faults.lossy_disk import LossyDisk
from tests.store.samples import accept_text

CUTS: Final = 24
EVERY: Final = 40
"""File operations between two cuts, on average."""
WAITERS: Final = 8
MESSAGES: Final = 240
FILLER: Final = " lorem ipsum" * 300


class Cuts:
    """Saves a cut now and then, from within the file operation at which the power goes."""

    def __init__(self, folder: Path, seed: int, *, honest: bool) -> None:
        self._folder = folder
        # Repeatable by its seed; nothing secret.
        self._chance = random.Random(seed)  # noqa: S311
        self._made = 0
        self.acked: list[str] = []
        self.disk = LossyDisk(
            syncs=lambda path: honest or not path.endswith("-wal"), on_change=self._perhaps
        )

    def _perhaps(self) -> None:
        if self._made >= CUTS or self._chance.randrange(EVERY):
            return
        acked = list(self.acked)
        if not acked:
            return
        self._made += 1
        cut = self._folder / f"cut-{self._made}"
        cut.mkdir()
        for path, content in self.disk.cut(self._chance).items():
            (cut / Path(path).name).write_bytes(content)
        (cut / "acked.json").write_text(json.dumps(acked))


async def work(path: Path, cuts: Cuts) -> None:
    numbers = iter(range(MESSAGES))
    async with open_store(path, clock=SystemClock()) as opened:

        async def waiter() -> None:
            for number in numbers:
                text = f"{number}{FILLER}"
                await opened.store.accept(accept_text(text, dedupe=f"n{number}"))
                cuts.acked.append(text)

        async with asyncio.TaskGroup() as tasks:
            for number in range(WAITERS):
                tasks.create_task(waiter(), name=f"waiter:{number}")
        # The power goes: nothing is closed or folded any more.
        os._exit(0)


def main() -> None:
    folder, seed, disk = sys.argv[1:]
    cuts = Cuts(Path(folder), int(seed), honest=disk == "honest")
    path = Path(folder) / "state.db"
    cuts.disk.remember(path)
    cuts.disk.install()
    asyncio.run(work(path, cuts))


if __name__ == "__main__":
    main()
