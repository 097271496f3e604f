"""What opening a store loads: no migration tools, unless there is something to migrate."""

import subprocess
import sys
from pathlib import Path

OPEN = """
import asyncio, sys
from pathlib import Path
from gateway.runtime.clock import SystemClock
from store import open_store

async def main():
    async with open_store(Path(sys.argv[1]), clock=SystemClock()):
        pass

asyncio.run(main())
print(*sorted({"sqlalchemy", "alembic"} & set(sys.modules)))
"""


def test_a_store_is_made_and_opened_without_the_migration_tools(tmp_path: Path) -> None:
    first = _loaded(tmp_path / "state.db")
    again = _loaded(tmp_path / "state.db")

    assert (first, again) == ("", "")


def _loaded(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
