"""What the long commands share: their options, the seed, and how they report."""

import argparse
import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def parser(about: str | None, *, kills: int | None) -> argparse.ArgumentParser:
    """Return a parser of `--seed`, `--json` and, where there is a number of them, `--kills`."""
    made = argparse.ArgumentParser(description=about)
    if kills is not None:
        made.add_argument("--kills", type=int, default=kills)
    made.add_argument("--seed", type=int, default=None)
    made.add_argument("--json", type=Path, default=None)
    return made


def announced(seed: int | None) -> int:
    """Print the seed of a run, a new one when none is given, and return it."""
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    return seed


def dice_of(seed: int) -> random.Random:
    """Return the dice of a seed."""
    # A seed that can be given again, not a secret.
    return random.Random(seed)  # noqa: S311


def tell(report: Mapping[str, Any], *, histogram: str | None, path: Path | None) -> int:
    """Print a report, its histogram (if it has one) first, keep it as JSON, and return the exit code."""
    counts: Mapping[str, int] = report[histogram] if histogram else {}
    for what, count in counts.items():
        sys.stdout.write(f"{what:18} {count:4} {'#' * count}\n")
    line = {name: value for name, value in report.items() if name != histogram}
    sys.stdout.write(json.dumps(line) + "\n")
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=1))
    return 1 if report["problems"] else 0
