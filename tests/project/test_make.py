import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.requirement import requirement

ROOT: Final = Path(__file__).resolve().parents[2]
MAKEFILE: Final = (ROOT / "Makefile").read_text(encoding="utf-8")
PROMISED: Final = ("setup", "run", "test", "check", "bench")


@requirement("design.make")
@pytest.mark.parametrize("target", PROMISED)
def test_each_promised_target_sets_up_by_itself_whatever_folder_has_its_name(target: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert done.returncode == 0
    assert "-m venv .venv" in done.stdout
    assert phony is not None
    assert target in phony[1].split()


def test_ci_runs_the_test_command_of_the_readme_and_the_rest_of_the_check() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    checked = re.search(r"^check: (.*?)  ##", MAKEFILE, re.MULTILINE)

    assert "make test" in readme
    assert checked is not None
    assert set(checked[1].split()) <= set(re.findall(r"\b[a-z]+\b", script))


def test_no_machine_and_no_registry_is_named_in_the_lock() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")

    assert "--hash=sha256:" in lock
    assert not re.findall(r"(?m)^.*(?:https?://|file:|index-url).*$", lock)
