"""A home whose MCP servers are scripts of the tests."""

import json
import sys
from pathlib import Path

import pytest

FAKES = Path(__file__).parents[2] / "fakes" / "mcp"


class Configured:
    """A home whose servers are the scripts in `tests/fakes/mcp`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.runs = home / "runs"
        self.starts = home / "starts"

    def write(self, **entries: object) -> None:
        text = json.dumps({"mcp_servers": entries})
        (self.home / "config.yaml").write_text(text)

    def server(self, *more: str, script: str = "legacy_server.py", **keys: object) -> object:
        args = [str(FAKES / script), "--runs", str(self.runs), *more]
        if script == "legacy_server.py":
            args += ["--starts", str(self.starts)]
        return {"command": sys.executable, "args": args, **keys}

    @property
    def started(self) -> int:
        return len(self.starts.read_text().splitlines()) if self.starts.exists() else 0

    @property
    def ran(self) -> list[str]:
        return self.runs.read_text().splitlines() if self.runs.exists() else []


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configured:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    monkeypatch.delenv("HERMES_PROFILE", raising=False)
    monkeypatch.delenv("WIKI_URL", raising=False)
    return Configured(tmp_path)
