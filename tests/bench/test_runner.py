"""The runner of the benches, and that they measure what they say."""

import asyncio
from pathlib import Path

import pytest

from bench.__main__ import run, table, verdict
from bench.report import percentile, spread
from bench.turn_call import CALLS, Times, bare, inside
from bench.turns import text_turns, turn_rate
from tests.support.requirement import requirement

LOOSE_RATE = 5.0
"""Far below the goal of the bench: here it only matters that the rate is that of real turns."""


@pytest.fixture
def benches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose modules the runner can start."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_a_bench_gives_the_rows_it_prints(benches: Path) -> None:
    (benches / "fine.py").write_text('print("warming up"); print(\'{"name": "a", "met": true}\')')

    assert run("fine", module="fine") == [{"name": "a", "met": True}]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise SystemExit('no disk')", "no disk"),
        ("print('nothing to say')", "no figure"),
        ("while True: pass", "not done within 1 s"),
    ],
)
def test_a_bench_that_gives_no_figure_has_not_met_its_goal(
    benches: Path, code: str, error: str
) -> None:
    (benches / "broken.py").write_text(code)

    assert run("broken", module="broken", seconds=1) == [
        {"name": "broken", "error": error, "met": False}
    ]


def test_the_figures_before_a_failure_are_kept(benches: Path) -> None:
    (benches / "half.py").write_text('print(\'{"name": "a"}\', flush=True); raise SystemExit(1)')

    assert [row.get("error") for row in run("half", module="half")] == [None, "no figure"]


def test_the_table_shows_every_figure_and_every_failure() -> None:
    lines = table(
        [
            {"name": "a", "ours": 3, "floor": 2, "ratio": 1.5, "goal": "<= 2 x", "met": True},
            {"name": "bb", "ours": 4, "met": None},
            {"name": "c", "error": "no disk", "met": False},
        ]
    )

    assert lines[0].split() == [
        "name", "ours", "unit", "spread", "floor", "ratio", "p95_ms", "goal", "met"
    ]  # fmt: skip
    assert lines[1].split() == ["a", "3", "2", "1.5", "<=", "2", "x", "met"]
    assert lines[2].split() == ["bb", "4"]
    assert lines[3] == "c failed: no disk"
    assert [verdict({"met": met}) for met in (True, False, None)] == ["met", "NOT MET", ""]


def test_shares_and_spreads_are_taken_of_the_values_in_order() -> None:
    values = [3.0, 1.0, 2.0, 4.0]

    assert percentile(values, 0.5) == 3.0
    assert percentile(values, 1) == 4.0
    assert spread(values) == "1 to 4"


@requirement("numbers.turn_rate")
def test_the_rate_is_that_of_turns_committed_with_their_replies() -> None:
    rate = asyncio.run(turn_rate(conversations=20, turns_each=5))

    assert rate > LOOSE_RATE


def test_the_time_of_a_turn_is_taken_for_each_one() -> None:
    taken = asyncio.run(text_turns(3))

    assert len(taken) == 3
    assert min(taken) > 0


@requirement("numbers.tool_call")
def test_calls_are_timed_inside_a_turn_and_alone() -> None:
    ours, floor = Times(), Times()

    asyncio.run(inside(ours, turns=2))
    asyncio.run(bare(floor, turns=2))

    assert len(ours.taken) == len(floor.taken) == 2 * (CALLS - 1)
