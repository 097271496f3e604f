"""What a bench prints: one JSON object a line, with the figure, its floor and its goal."""

import json
import statistics
import sys
from collections.abc import Sequence
from typing import TypedDict


class Row(TypedDict, total=False):
    """One figure; `ratio` is ours to floor, `met` None where there is no goal.

    `spread` says between which values the rounds lay that `ours` is the median of.
    """

    name: str
    unit: str
    ours: float
    floor: float | None
    floor_is: str
    ratio: float | None
    p50_ms: float
    p95_ms: float
    spread: str
    goal: str
    met: bool | None


def emit(row: Row) -> None:
    """Print a row as one line of JSON."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which that share lies; `share` from 0 to 1."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def spread(values: Sequence[float]) -> str:
    """Return the least and the greatest value, in three digits."""
    return f"{min(values):.3g} to {max(values):.3g}"
