"""Runs the client scenarios of the MCP conformance suite against the host, and counts what passed.

    python -m tests.conformance.suite [--only REGEX] [--json FILE]

The suite is an npm package that needs Node 22: `make conformance` installs both beside the
sources. Scenarios run one after another, since their servers are timed. Exit code 1 when a
scenario that the revision requires has failed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

FOLDER: Final = Path(".conformance") / "node_modules"
NODE: Final = FOLDER / "node" / "bin" / "node"
SUITE: Final = FOLDER / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
REVISIONS: Final = ("2025-11-25", "2026-07-28")
SECONDS: Final = 60
CLIENT: Final = f"{sys.executable} -m tests.conformance.client"

_LISTED: Final = re.compile(r"\s+- (\S+) \[(.*)\]$", re.MULTILINE)
_REQUIRED: Final = re.compile(r"\s+- (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one scenario; `failures` are the suite's words."""

    revision: str
    scenario: str
    required: bool
    passed: bool
    checks: int
    failures: tuple[str, ...]


def scenarios(listing: str, revision: str) -> tuple[str, ...]:
    """Return the names that a listing of the suite has for a revision."""
    found = cast("list[tuple[str, str]]", _LISTED.findall(listing))
    return tuple(name for name, revisions in found if revision in revisions.split(","))


def required(requirements: str) -> frozenset[str]:
    """Return the client scenarios that a revision requires."""
    section = requirements.partition("Client scenarios")[2]
    section = re.split(r"^(?:Server scenarios|Run and reported)", section, flags=re.MULTILINE)[0]
    return frozenset(cast("list[str]", _REQUIRED.findall(section)))


def outcome(
    revision: str, scenario: str, *, must: bool, code: int, checks: Sequence[Mapping[str, Any]]
) -> Outcome:
    """Judge one run: no check may fail, one must have succeeded, and the client must have ended well."""
    failures = [
        f"{check['id']}: {check.get('errorMessage') or check.get('description') or ''}"
        for check in checks
        if check["status"] == "FAILURE"
    ]
    if code and not failures:
        failures = [f"exit code {code}"]
    good = sum(check["status"] in {"SUCCESS", "INFO"} for check in checks)
    return Outcome(
        revision=revision,
        scenario=scenario,
        required=must,
        passed=not failures and good > 0,
        checks=good,
        failures=tuple(failures),
    )


def run(revision: str, scenario: str, *, must: bool) -> Outcome:
    """Let the suite play one scenario with our client."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--scenario", scenario, "--spec-version", revision, "--command", CLIENT]
        try:
            code = _suite("client", *options, "--timeout", str(SECONDS * 1000), "-o", folder)[0]
        except subprocess.TimeoutExpired:
            code = -1
        files = sorted(Path(folder).rglob("checks.json"))
        checks = [check for file in files for check in json.loads(file.read_text())]
    return outcome(revision, scenario, must=must, code=code, checks=checks)


def _suite(*arguments: str) -> tuple[int, str]:
    path = f"{NODE.parent.resolve()}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [str(NODE), str(SUITE), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        timeout=SECONDS * 2,
        check=False,
    )
    return done.returncode, done.stdout


def main() -> int:
    """Run what was asked for and tell; return the exit code."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default="", help="a regular expression for the scenarios' names")
    options.add_argument("--json", type=Path)
    options.add_argument("--counts", type=Path, help="a file for what passed, without the checks")
    given = options.parse_args()
    if not NODE.exists() or not SUITE.exists():
        sys.stderr.write("the suite is not installed: make conformance\n")
        return 2
    listing = _suite("list", "--client")[1]
    found: list[Outcome] = []
    for revision in REVISIONS:
        must = required(_suite("list", "--requirements", revision)[1])
        for name in scenarios(listing, revision):
            if re.search(given.only, name):
                found.append(run(revision, name, must=name in must))
                _tell(found[-1])
    for revision in REVISIONS:
        mine = [one for one in found if one.revision == revision]
        passed = sum(one.passed for one in mine)
        needed = [one for one in mine if one.required]
        good = sum(one.passed for one in needed)
        sys.stdout.write(
            f"{revision}: {passed} of {len(mine)} passed; required: {good} of {len(needed)}\n"
        )
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps([asdict(one) for one in found], indent=1))
    if given.counts is not None:
        given.counts.write_text(json.dumps(counts(found), indent=1) + "\n")
    return 1 if any(one.required and not one.passed for one in found) else 0


def counts(found: Sequence[Outcome]) -> Mapping[str, Mapping[str, int | list[str]]]:
    """Return what passed, by revision: for a file that shows each change of it."""
    kept: dict[str, Mapping[str, int | list[str]]] = {}
    for revision in REVISIONS:
        mine = [one for one in found if one.revision == revision]
        needed = [one for one in mine if one.required]
        kept[revision] = {
            "scenarios": len(mine),
            "passed": sum(one.passed for one in mine),
            "required": len(needed),
            "required_passed": sum(one.passed for one in needed),
            "failed": [one.scenario for one in mine if not one.passed],
        }
    return kept


def _tell(one: Outcome) -> None:
    word = "ok" if one.passed else "FAILED"
    sys.stdout.write(f"{one.revision} {one.scenario}: {word}, {one.checks} checks\n")
    for failure in one.failures:
        sys.stdout.write(f"    {failure}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
