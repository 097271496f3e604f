"""How the runs of the conformance suite are listed and judged."""

from typing import Any

import pytest

from tests.conformance.suite import outcome, required, scenarios

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
