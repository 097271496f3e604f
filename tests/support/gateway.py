"""A real `hermes gateway run` process of a home."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.support.chat import HERMES, environment

READY_SECONDS: Final = 60


class Gateway:
    """The service, up to the end of the block; `stdout` is what it has printed there."""

    def __init__(
        self, home: Path, *, env: Mapping[str, str] | None = None, ready: bool = True
    ) -> None:
        home.mkdir(mode=0o700, exist_ok=True)
        self.home = home
        self.stdout = ""
        self._errors = home.parent / f"{home.name}.gateway-stderr.txt"
        with self._errors.open("ab") as errors:
            self._begins = errors.tell()
            self._process = subprocess.Popen(
                [*HERMES, "gateway", "run"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors.fileno(),
                env=environment(home, env),
                cwd=home,
                start_new_session=True,
            )
        if ready and not self.read_until("ready"):
            self.kill()
            raise AssertionError(f"the gateway did not get ready:\n{self.stderr}")

    def __enter__(self) -> "Gateway":
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def socket(self) -> Path:
        return self.home / "gateway.sock"

    @property
    def stderr(self) -> str:
        """What this process said there."""
        return self._errors.read_bytes()[self._begins :].decode("utf-8", "replace")

    def read_until(self, text: str, *, seconds: float = READY_SECONDS) -> bool:
        """Read stdout until it holds the text; False when it ends or the time is up."""
        end = time.monotonic() + seconds
        while text not in self.stdout:
            if time.monotonic() > end or not self._read(end):
                return False
        return True

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, *, seconds: float = 30) -> int:
        """Return the exit code once it has ended; the rest of stdout is read."""
        code = self._process.wait(seconds)
        while self._read(time.monotonic()):
            continue
        return code

    def end(self, *, seconds: float = 30) -> int:
        """SIGTERM, and wait."""
        self.signal(signal.SIGTERM)
        return self.wait(seconds=seconds)

    def kill(self) -> None:
        """SIGKILL, by pid."""
        self._process.kill()
        self._process.wait(10)

    def _read(self, end: float) -> bool:
        out = self._process.stdout
        if out is None:
            return False
        ready, _, _ = select.select([out], [], [], max(0.0, end - time.monotonic()))
        data = os.read(out.fileno(), 1 << 16) if ready else b""
        self.stdout += data.decode("utf-8", "replace")
        return bool(data)
