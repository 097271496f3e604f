"""Runs every bench in a process of its own; prints a table, writes JSON. `python -m bench`."""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

BENCHES: Final = (
    "accept",
    "flood",
    "turns",
    "turn_call",
    "host_call",
    "servers",
    "tools",
    "model_call",
    "start",
    "help",
    "press",
    "telegram_turn",
    "parked",
    "idle",
    "bridge",
    "events_wait",
)
RESULTS: Final = Path("bench") / "results" / "bench.json"
SECONDS: Final = 300
COLUMNS: Final = ("name", "ours", "unit", "spread", "floor", "ratio", "p95_ms", "goal")

Found = Mapping[str, object]
"""A row of `bench.report` as it was printed, or a bench's failure."""


def run(name: str, *, module: str | None = None, seconds: float = SECONDS) -> list[Found]:
    """Return the rows of one bench; a failure is a row too."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", module or f"bench.{name}"],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [_failure(name, f"not done within {seconds:g} s")]
    rows = [
        cast("Found", json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")
    ]
    if done.returncode or not rows:
        rows.append(_failure(name, done.stderr.strip()[-500:] or "no figure"))
    return rows


def _failure(name: str, error: str) -> Found:
    return {"name": name, "error": error, "met": False}


def table(rows: Sequence[Found]) -> list[str]:
    """Return the rows under their headings, and what failed below them."""
    cells = [[*COLUMNS, "met"]]
    cells += [
        [*(str(row.get(column) or "") for column in COLUMNS), verdict(row)]
        for row in rows
        if "error" not in row
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    lines += [f"{row['name']} failed: {row['error']}" for row in rows if "error" in row]
    return lines


def verdict(row: Found) -> str:
    match row.get("met"):
        case True:
            return "met"
        case False:
            return "NOT MET"
        case _:
            return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(BENCHES)}; default all")
    names = parser.parse_args().names or BENCHES
    rows = [row for name in names for row in run(name)]
    print("\n".join(table(rows)))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(
        json.dumps({"peer": None, "peer_reason": "not installed", "rows": rows}, indent=1)
    )
    print(f"written to {RESULTS}")
    # A goal that is not met is a figure to read, not a fault of the run.
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
