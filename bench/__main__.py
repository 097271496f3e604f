"""Runs every bench in a process of its own; prints a table, writes JSON. `python -m bench`."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Final, cast

BENCHES: Final = ("accept", "turns", "host_call", "model_call", "help")
RESULTS: Final = Path("bench") / "results" / "bench.json"
SECONDS: Final = 300


def run(name: str) -> list[dict[str, object]]:
    """Return the rows of one bench; a failure is a row too."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{name}"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    rows = [
        cast("dict[str, object]", json.loads(line))
        for line in done.stdout.splitlines()
        if line.startswith("{")
    ]
    if done.returncode or not rows:
        rows.append(
            {"name": name, "error": done.stderr.strip()[-500:] or "no figure", "met": False}
        )
    return rows


def show(row: dict[str, object]) -> str:
    verdict = {True: "met", False: "NOT MET", None: ""}[cast("bool | None", row.get("met"))]
    figures = ", ".join(
        f"{key} {value}" for key, value in row.items() if key not in {"name", "met"}
    )
    return f"{row['name']}: {figures}  {verdict}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(BENCHES)}; default all")
    names = parser.parse_args().names or BENCHES
    rows = [row for name in names for row in run(name)]
    for row in rows:
        print(show(row))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(
        json.dumps({"peer": None, "peer_reason": "not installed", "rows": rows}, indent=1)
    )
    print(f"written to {RESULTS}")
    return 0 if all(row.get("met") is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
