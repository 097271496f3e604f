"""A home for one test: its configuration, the files its servers write, and its chats."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.chat import ROOT, Chat

Json = Mapping[str, Any]

FAKES: Final = ROOT / "tests" / "fakes" / "mcp"
CARD: Final = r"1\) Allow once\n2\) Allow for this session\n3\) Always allow\n4\) Deny\n"
"""The end of an approval card."""


@dataclass(frozen=True, slots=True)
class Model:
    """The scripted model of the whole run; `record` has every request as a line of JSON."""

    url: str
    record: Path

    def requests(self, said: str) -> list[Json]:
        """Return the bodies of the requests in whose conversation a person said that."""
        lines = self.record.read_text(encoding="utf-8").splitlines()
        bodies: list[Json] = [json.loads(line)["body"] for line in lines]
        return [body for body in bodies if said in texts(body, "user")]


def texts(body: Json, role: str) -> list[str]:
    """Return what that role said in a request, in order."""
    return [text_of(item["content"]) for item in body["messages"] if item["role"] == role]


def text_of(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part.get("text", "") for part in content)


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """`path` is the home; the server `box` counts its runs in `runs`."""

    path: Path
    model: Model
    servers: dict[str, Json] = field(default_factory=dict[str, Json])

    def configure(self, *, guided: bool = False, **sections: object) -> None:
        """Write the configuration: the model unless `guided`, the servers, the given sections."""
        model = {"provider": "openai", "name": "scripted", "base_url": self.model.url}
        config = {
            **({} if guided else {"model": model}),
            "mcp_servers": self.servers,
            **sections,
        }
        # JSON is YAML.
        (self.path / "config.yaml").write_text(json.dumps(config), encoding="utf-8")

    def serve(
        self,
        *options: str,
        name: str = "box",
        script: str = "legacy_server.py",
        **keys: object,
    ) -> None:
        """Add an untrusted server that runs one of the fakes; call `configure` after it."""
        arguments = ["-S", str(FAKES / script), "--runs", str(self.file("runs")), *options]
        self.servers[name] = {
            "command": sys.executable,
            "args": arguments,
            "trust": "untrusted",
            **keys,
        }

    def file(self, name: str) -> Path:
        """Return a place for a file that is no part of the home."""
        return self.path.parent / name

    def lines(self, name: str) -> list[str]:
        """Return what a server wrote to a file."""
        path = self.file(name)
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    @property
    def runs(self) -> Sequence[str]:
        """What ran, once for each time."""
        return self.lines("runs")

    @property
    def log(self) -> str:
        path = self.path / "logs" / "gateway.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @property
    def stderr(self) -> str:
        return (self.path / "stderr.txt").read_text(encoding="utf-8", errors="replace")

    def chat(self, *, terminal: bool = False) -> Chat:
        """Start `hermes chat`."""
        return Chat(self.path, terminal=terminal)
