"""A real `hermes mcp serve` process, spoken to in lines of JSON-RPC, and one that writes what it reads."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.support.chat import HERMES, ROOT, environment

Json: TypeAlias = dict[str, Any]

FIRST_KEY: Final = "agent:main:telegram:dm:100000"
SECONDS: Final = 30.0
HANDSHAKE: Final = "2025-11-25"
CLIENT: Final = {"name": "test", "version": "1"}


class BridgeProcess:
    """The bridge up to the end of the block, initialized unless `handshake` is false.

    `lines` has everything it ever wrote to stdout.
    """

    def __init__(
        self,
        home: Path,
        *args: str,
        handshake: bool = True,
        client: Mapping[str, str] = CLIENT,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.lines: list[bytes] = []
        self._answers: dict[int, Json] = {}
        self._waiting: queue.Queue[bytes | None] = queue.Queue()
        self._others: list[Json] = []
        self._number = 0
        self._errors = home.parent / f"{home.name}.bridge-stderr.txt"
        with self._errors.open("ab") as errors:
            self._begins = errors.tell()
            self.process = subprocess.Popen(
                [*HERMES, *options, "mcp", "serve", *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors.fileno(),
                env=environment(home, env),
                cwd=cwd or home,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.hello: Json = {}
        if handshake:
            self.hello = self.initialize(client)
            self.notify("notifications/initialized")

    def __enter__(self) -> "BridgeProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self._reader.join(10)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def stderr(self) -> str:
        return self._errors.read_bytes()[self._begins :].decode("utf-8", "replace")

    def initialize(self, client: Mapping[str, str] = CLIENT) -> Json:
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": dict(client)}
        return self.ask("initialize", params)

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def notify(self, method: str, params: Json | None = None) -> None:
        message: Json = {"jsonrpc": "2.0", "method": method}
        self.write(json.dumps(message | ({} if params is None else {"params": params})).encode())

    def start(self, method: str, params: Json) -> int:
        """Send a request; return its id."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.write(json.dumps(message).encode())
        return self._number

    def answer(self, number: int, *, seconds: float = SECONDS) -> Json:
        """Return the result of a request once it is there."""
        end = time.monotonic() + seconds
        while number not in self._answers:
            self._take(end, what=f"answer {number}")
        found = self._answers.pop(number)
        assert "result" in found, found
        result: Json = found["result"]
        return result

    def ask(self, method: str, params: Json, *, seconds: float = SECONDS) -> Json:
        return self.answer(self.start(method, params), seconds=seconds)

    def begin(self, tool: str, **arguments: object) -> int:
        """Start a call; return its id for `answer`."""
        return self.start("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: object) -> Json:
        """Return what a tool gives; a failure has `error` and `code`."""
        found: Json = self.answer(self.begin(tool, **arguments), seconds=120)["structuredContent"]
        return found

    def notification(self, method: str, *, seconds: float = SECONDS) -> Json:
        """Return the parameters of the next notification of that method."""
        end = time.monotonic() + seconds
        while True:
            for index, message in enumerate(self._others):
                if message["method"] == method:
                    params: Json = self._others.pop(index)["params"]
                    return params
            self._take(end, what=method)

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def wait(self, *, seconds: float = 20) -> int:
        """Return the exit code; `lines` is whole then."""
        code = self.process.wait(seconds)
        self._reader.join(10)
        return code

    def _take(self, end: float, *, what: str) -> None:
        try:
            line = self._waiting.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            raise AssertionError(f"no {what} in time:\n{self.stderr}") from None
        assert line is not None, f"the bridge ended before {what}:\n{self.stderr}"
        message: Json = json.loads(line)
        if "method" in message:
            self._others.append(message)
        else:
            self._answers[message["id"]] = message

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._waiting.put(line)
        self._waiting.put(None)


class Writer:
    """`bench.writer`: commits messages as the gateway's intake does."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def say(self, text: str, *, key: str = FIRST_KEY) -> None:
        """Return once it is committed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"session_key": key, "text": text}) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline()


@contextmanager
def writing(home: Path) -> Generator[Writer]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.writer", "--home", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(home),
        cwd=ROOT,
        text=True,
    ) as process:
        yield Writer(process)
