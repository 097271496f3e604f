import json

import pytest

from tests.support.audit import verdict
from tests.support.requirement import requirement


def report(*packages: dict[str, object]) -> str:
    return json.dumps({"dependencies": list(packages), "fixes": []})


CLEAN: dict[str, object] = {"name": "httpx", "version": "0.28.1", "vulns": []}
BAD: dict[str, object] = {"name": "old", "version": "1.0", "vulns": [{"id": "PYSEC-1"}]}
SKIPPED: dict[str, object] = {"name": "new", "skip_reason": "not found"}


@requirement("threat.s31")
@pytest.mark.parametrize(
    ("exit_code", "stdout", "expected", "says"),
    [
        (0, report(CLEAN), 0, "no known vulnerability"),
        (1, report(CLEAN, BAD), 1, "old 1.0: PYSEC-1"),
        (1, report(BAD, SKIPPED), 1, "old 1.0: PYSEC-1"),
        (0, report(CLEAN, SKIPPED), 0, "NOT AUDITED"),
        (1, report(CLEAN), 0, "NOT AUDITED"),
        (1, "", 0, "NOT AUDITED"),
        (1, "[]", 0, "NOT AUDITED"),
    ],
)
def test_the_audit_fails_for_a_known_vulnerability_and_never_claims_clean_unasked(
    exit_code: int, stdout: str, expected: int, says: str
) -> None:
    code, text = verdict(exit_code, stdout)

    assert code == expected
    assert says in text
