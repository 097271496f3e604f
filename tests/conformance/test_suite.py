"""How the runs of the conformance suite are listed and judged."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.suite import REVISIONS, counts, outcome, required, scenarios
from tests.support.requirement import requirement

COUNTS = Path(__file__).with_name("counts.json")

LISTING = """\
Client scenarios:
  - initialize [2025-11-25]
  - tools_call [2025-11-25,2026-07-28]
  - auth/basic [2026-07-28]
"""
REQUIREMENTS = """\
Server scenarios:
  - ping
Client scenarios:
  - initialize
  - tools_call
Run and reported, not required:
  - extra
"""


def test_the_scenarios_of_a_revision_are_those_that_name_it() -> None:
    assert scenarios(LISTING, "2025-11-25") == ("initialize", "tools_call")
    assert scenarios(LISTING, "2026-07-28") == ("tools_call", "auth/basic")
    assert required(REQUIREMENTS) == {"initialize", "tools_call"}


@pytest.mark.parametrize(
    ("statuses", "code", "passed"),
    [
        (["SUCCESS", "INFO"], 0, True),
        (["SUCCESS", "FAILURE"], 0, False),
        (["SUCCESS"], 1, False),
        # A client that did nothing has shown nothing.
        ([], 0, False),
    ],
)
def test_a_scenario_passes_when_something_was_checked_and_nothing_failed(
    statuses: list[str], code: int, *, passed: bool
) -> None:
    checks: list[dict[str, Any]] = [{"id": "a", "status": status} for status in statuses]

    found = outcome("2026-07-28", "x", must=True, code=code, checks=checks)

    assert (found.passed, bool(found.failures)) == (passed, "FAILURE" in statuses or code != 0)


@requirement("design.mcp.conformance")
def test_every_scenario_that_a_revision_requires_passes_in_the_last_run() -> None:
    kept = json.loads(COUNTS.read_text())

    assert {revision: kept[revision]["required_passed"] for revision in REVISIONS} == {
        "2025-11-25": 18,
        "2026-07-28": 32,
    }
    for revision in REVISIONS:
        assert kept[revision]["required_passed"] == kept[revision]["required"]


def test_the_counts_are_those_of_the_outcomes() -> None:
    good = outcome("2025-11-25", "a", must=True, code=0, checks=[{"id": "x", "status": "SUCCESS"}])
    bad = outcome("2025-11-25", "b", must=False, code=1, checks=[])

    assert counts([good, bad])["2025-11-25"] == {
        "scenarios": 2,
        "passed": 1,
        "required": 1,
        "required_passed": 1,
        "failed": ["b"],
    }
