"""An agent as plain as can be: starts an MCP server and speaks JSON-RPC with it over its pipes.

What it measures is the server: nothing is checked, and each line is stamped when it is there.
"""

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

SECONDS: Final = 60.0
HANDSHAKE: Final = "2025-11-25"

Answer = tuple[float, Mapping[str, Any]]
"""When it was there (`time.perf_counter`), and the result."""


class Agent:
    """Up to the end of the block; `initialized` is how many seconds that took."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str]) -> None:
        self._lines: queue.Queue[tuple[float, bytes]] = queue.Queue()
        self._number = 0
        began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **env},
        )
        threading.Thread(target=self._read, daemon=True).start()
        hello = {
            "protocolVersion": HANDSHAKE,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        at, _ = self.ask("initialize", hello)
        self.initialized = at - began
        self._write({"method": "notifications/initialized"})

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.wait(10)

    def call(self, tool: str, arguments: Mapping[str, object]) -> tuple[float, Mapping[str, Any]]:
        """Return how many seconds a call took, and what it gave."""
        began = time.perf_counter()
        at, result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return at - began, result["structuredContent"]

    def ask(self, method: str, params: Mapping[str, object]) -> Answer:
        self.start(method, params)
        return self.take()

    def start(self, method: str, params: Mapping[str, object]) -> None:
        """Send a request; its answer is the next one of `take`."""
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})

    def take(self) -> Answer:
        at, line = self._lines.get(timeout=SECONDS)
        return at, json.loads(line)["result"]

    def _write(self, message: Mapping[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put((time.perf_counter(), line))
