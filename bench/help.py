"""How long `hermes --help` and a subcommand's help take, against the bare interpreter."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from bench.report import emit, median, spread

RUNS: Final = 15
HERMES: Final = str(Path(sys.executable).with_name("hermes"))
BARE: Final = (sys.executable, "-c", "pass")
FIGURES: Final = (
    ("help", (HERMES, "--help"), 300),
    ("subcommand_help", (HERMES, "config", "set", "--help"), 500),
)


def once(*command: str) -> float:
    """Run a command and return its wall time in ms."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def main() -> None:
    for name, command, goal in FIGURES:
        # The first run of each fills the disk's cache.
        once(*command)
        ours: list[float] = []
        floor: list[float] = []
        for _ in range(RUNS):
            ours.append(once(*command))
            floor.append(once(*BARE))
        emit(
            {
                "name": name,
                "unit": "ms",
                "ours": round(median(ours), 1),
                "floor": round(median(floor), 1),
                "floor_is": "python -c pass",
                "ratio": round(median(ours) / median(floor), 2),
                "p50_ms": round(median(ours), 1),
                "spread": spread(ours),
                "goal": f"<= {goal} ms",
                "met": median(ours) <= goal,
            }
        )


if __name__ == "__main__":
    main()
