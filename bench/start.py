"""How long one command of the chat takes in a process of its own: until its reply, and until its end.

The home is the one `hermes chat` makes for itself: guided, with the demo server.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.report import Row, emit, median, spread

RUNS: Final = 7
HERMES: Final = str(Path(sys.executable).with_name("hermes"))
COMMAND: Final = (HERMES, "chat", "-q", "/whoami")
LIBRARIES: Final = "typer, pydantic, ruamel.yaml, aiosqlite, asyncio"


def chat_once(home: str) -> tuple[float, float]:
    """Return the seconds until the reply and until the end."""
    began = time.perf_counter()
    with subprocess.Popen(
        COMMAND,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HERMES_HOME": home},
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        replied = time.perf_counter() - began
        process.wait()
    assert line, "no reply"
    return replied, time.perf_counter() - began


def import_once() -> float:
    """Return the seconds of an interpreter that loads the libraries the reply needs."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {LIBRARIES}"], check=True)
    return time.perf_counter() - began


def _row(name: str, ours: list[float], floor: list[float]) -> Row:
    return {
        "name": name,
        "unit": "s",
        "ours": round(median(ours), 2),
        "floor": round(median(floor), 2),
        "floor_is": f"python -c 'import {LIBRARIES}'",
        "ratio": round(median(ours) / median(floor), 2),
        "spread": spread(ours),
        "goal": "a separate row, no goal",
        "met": None,
    }


def main() -> None:
    replied: list[float] = []
    ended: list[float] = []
    floor: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        # The first run makes the home, the second finds it.
        chat_once(home)
        import_once()
        for _ in range(RUNS):
            reply, end = chat_once(home)
            replied.append(reply)
            ended.append(end)
            floor.append(import_once())
    emit(_row("start_to_reply", replied, floor))
    emit(_row("start_to_end", ended, floor))


if __name__ == "__main__":
    main()
