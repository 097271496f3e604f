"""A home with a scripted model and an untrusted MCP server, for tests with real processes.

Run as `python -m tests.support.scripted` it is the model: asked to "add X" it calls the write tool, then
says "done X", "refused X" or "interrupted X" by what the call gave.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.fakes.chat_completions import chat_completions
from tests.fakes.model_script import Asked, Reply, Script
from tests.support.chat import ROOT

SERVER: Final = "box"


class NoteTaker(Script):
    """Answers by what it is asked; one conversation at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._note = ""

    def next(self, asked: Asked) -> Reply:
        """Call the tool the person names, then put its outcome in a word."""
        if asked.role != "user":
            return Reply(text=f"{_outcome(asked.text)} {self._note}")
        found = re.search(r"(add|form) (\S+)\s*$", asked.text)
        if found is None:
            return Reply(text=f"You said: {asked.text}")
        self._note = found[2]
        tool = "write" if found[1] == "add" else "order"
        call = {"name": f"mcp__{SERVER}__{tool}", "arguments": {"text": self._note}}
        return Reply(calls=(("tool_call", {"calls": [call]}),))


def _outcome(answer: str) -> str:
    text = answer.casefold()
    if "interrupted" in text or "unknown" in text:
        return "interrupted"
    return "refused" if "not run" in text or "denied" in text else "done"


@contextmanager
def model_process(module: str = "tests.support.scripted", *args: str) -> Generator[str]:
    """Run a scripted model, this one or another's module, as a process; yield its base URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *args],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def write_home(
    home: Path,
    *,
    model_url: str,
    runs: Path,
    server: Mapping[str, object] | None = None,
    sections: Mapping[str, object] | None = None,
) -> None:
    """Write a configuration: the model at that URL, and one untrusted server that logs each run."""
    entry: dict[str, object] = {
        "command": sys.executable,
        "args": [str(ROOT / "tests" / "fakes" / "mcp" / "legacy_server.py"), "--runs", str(runs)],
        "trust": "untrusted",
        **(server or {}),
    }
    config = {
        "model": {"provider": "openai", "name": "scripted", "base_url": model_url},
        "mcp_servers": {SERVER: entry},
        **(sections or {}),
    }
    # JSON is YAML.
    (home / "config.yaml").write_text(json.dumps(config))


async def _serve() -> None:
    async with chat_completions(NoteTaker()) as fake:
        sys.stdout.write(fake.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
