"""That the bench of many tools measures what it says; what it finds is its own to tell."""

import json
import subprocess
import sys

from bench import tools
from tests.support.requirement import requirement


@requirement("numbers.tool_registry")
def test_thousands_of_tools_are_registered_and_searched_beside_a_bare_index() -> None:
    registering, searching = tools.registry_rows()

    for row in (registering, searching):
        for figure in (row.get("ours"), row.get("floor")):
            assert figure is not None
            assert 0 < figure < 60_000
    assert "3300" in str(registering.get("goal"))


@requirement("numbers.lazy_start")
def test_a_hundred_lazy_servers_are_known_without_a_process_and_without_the_sdk() -> None:
    code = "import json, sys; from bench import tools; print(json.dumps(tools.lazy_row()));"
    code += "print(sorted(name for name in ('mcp', 'httpx2') if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    row, loaded = done.stdout.splitlines()

    assert 0 < json.loads(row)["ours"] < 60_000
    assert loaded == "[]"
