"""Audits the hashed lock for known vulnerabilities; says `NOT AUDITED` when it could not ask.

Run as `python -m tests.support.audit`. Exit 1 only for a vulnerability that was reported.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final, TypedDict, cast

LOCK: Final = "requirements.lock"
SECONDS: Final = 120


class _Package(TypedDict, total=False):
    name: str
    version: str
    skip_reason: str
    vulns: list[dict[str, object]]


def findings(report: str) -> tuple[list[str], int]:
    """Name each vulnerable package of a pip-audit JSON report; count those it could not judge.

    Raises:
        ValueError, KeyError, TypeError: It is not such a report.
    """
    packages = cast("list[_Package]", json.loads(report)["dependencies"])
    vulnerable = [
        f"{item.get('name')} {item.get('version')}: {', '.join(str(v['id']) for v in vulns)}"
        for item in packages
        if (vulns := item.get("vulns", []))
    ]
    return vulnerable, sum("skip_reason" in item for item in packages)


def verdict(exit_code: int, stdout: str) -> tuple[int, str]:
    """Turn what pip-audit said into our exit code and one sentence; no answer is never clean."""
    try:
        found, skipped = findings(stdout)
    except (ValueError, KeyError, TypeError):
        return 0, "NOT AUDITED: the vulnerability service could not be asked"
    if found:
        return 1, "vulnerable:\n  " + "\n  ".join(found)
    if skipped:
        return 0, f"NOT AUDITED: the service knew nothing of {skipped} packages"
    if exit_code != 0:
        return 0, "NOT AUDITED: the audit ended early"
    return 0, "audited: no known vulnerability in the lock"


def main() -> int:
    command = [sys.executable, "-m", "pip_audit", "--requirement", LOCK, "--require-hashes"]
    command += ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=Path.cwd()
        )
        code, text = verdict(done.returncode, done.stdout)
    except subprocess.TimeoutExpired:
        code, text = 0, "NOT AUDITED: the vulnerability service gave no answer in time"
    sys.stdout.write(text + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
