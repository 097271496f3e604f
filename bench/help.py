"""How long `hermes --help` and a subcommand's help take; prints one JSON object a line."""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15
HERMES = str(Path(sys.executable).with_name("hermes"))


def median_ms(*command: str) -> float:
    """Run it `RUNS` times after one warm-up and return the median wall time."""
    times: list[float] = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append((time.perf_counter() - start) * 1000)
    return round(statistics.median(times[1:]), 1)


def main() -> None:
    floor = median_ms(sys.executable, "-c", "pass")
    for name, command, goal in (
        ("help", (HERMES, "--help"), 300),
        ("help of a subcommand", (HERMES, "config", "set", "--help"), 500),
    ):
        ms = median_ms(*command)
        row = {"name": name, "ms": ms, "goal_ms": goal, "floor_ms": floor, "met": ms <= goal}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
