"""The benches of the bridge measure real answers over real processes."""

import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from bench.agent import Agent
from bench.bridge import BARE, TOOLS, bridge_of, memory, reads
from bench.events_wait import WRITERS, followed, row, waits, writing
from tests.support.chat import ROOT
from tests.support.requirement import requirement

LOOSE_MS = 2_000
"""Far above the goals: here it only matters that what is measured is the real thing."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    options = ("--home", str(place), "--conversations", "5", "--messages", "4")
    subprocess.run([sys.executable, "-m", "bench.seed", *options], cwd=ROOT, check=True)
    return place


@pytest.fixture
def database(home: Path) -> Generator[sqlite3.Connection]:
    uri = f"file:{home / 'state.db'}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as opened:
        yield opened


@requirement("numbers.bridge_reads", "numbers.bridge_start")
def test_each_reading_tool_is_measured_beside_its_statements(
    home: Path, database: sqlite3.Connection
) -> None:
    with bridge_of(home) as agent, Agent([sys.executable, "-c", BARE], env={}) as bare:
        rows = reads(agent, database, times=3)
        taken = memory(agent, bare)
        started = agent.initialized

    assert [found.get("name") for found in rows] == [f"bridge_read {name}" for name, *_ in TOOLS]
    for found in rows:
        took = found.get("ours", 0)
        assert 0 < took < LOOSE_MS
        assert found.get("met") == (took <= 2)
    assert 0 < started < 60
    assert taken.get("ours", 0) > 10


@requirement("numbers.events_wait")
@pytest.mark.parametrize(("name", "module"), WRITERS)
def test_a_wait_is_measured_from_the_commit_and_a_burst_is_followed_whole(
    home: Path, name: str, module: str
) -> None:
    with writing(home, module) as writer, bridge_of(home) as agent:
        writer.start()
        writer.committed()
        took = waits(agent, writer, commits=5)
        seen = followed(agent, writer, commits=40)

    assert seen == 40
    assert len(took) == 5
    assert all(abs(each) < LOOSE_MS for each in took)
    assert row(name, [1.0, 30.0], 1_000).get("met") is False
    assert row(name, [1.0, 2.0], 999).get("met") is False
    assert row(name, [1.0, 2.0], 1_000).get("met") is True
