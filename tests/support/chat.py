"""A real `hermes` process on a pipe or a pseudo-terminal, talked to line by line."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

HERMES: Final = (sys.executable, "-m", "gateway.cli.main")
ROOT: Final = Path(__file__).resolve().parents[2]
WINDOW: Final = (50, 240)
"""Lines and columns of a pseudo-terminal: wide, so that what is shown is not wrapped."""
_PLAIN: Final = {"PROMPT_TOOLKIT_NO_CPR": "1"}
"""A pseudo-terminal that nobody looks at does not say where its cursor is."""

_CUT_ESCAPE: Final = re.compile(r"\x1b(\[[0-9;?]*)?\Z")
AGAIN_SECONDS: Final = 2.0
_ESCAPES: Final = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|[()][A-Z0-9]|[=>])")


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a small environment for a process of the given home."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    base = {"HERMES_HOME": str(home), "HOME": str(home), "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    return {**kept, **base, **(extra or {})}


def hermes(
    home: Path, *args: str, stdin: str | None = "", env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run one command to its end."""
    return subprocess.run(
        [*HERMES, *args],
        input=stdin,
        env=environment(home, env),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class Chat:
    """`hermes chat`, running. `output` is what it printed that nobody expected yet, `raw` every byte of it."""

    def __init__(
        self,
        home: Path,
        *,
        args: Sequence[str] = ("chat",),
        env: Mapping[str, str] | None = None,
        terminal: bool = False,
    ) -> None:
        self.output = ""
        self.seen = ""
        self.raw = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cut = ""
        self._errors = home / "stderr.txt"
        self._master, slave = pty.openpty() if terminal else (-1, -1)
        if terminal:
            termios.tcsetwinsize(slave, WINDOW)
        with self._errors.open("ab") as errors:
            source = out = slave if terminal else subprocess.PIPE
            err = slave if terminal else errors.fileno()
            self._process = subprocess.Popen(
                [*HERMES, *args],
                stdin=source,
                stdout=out,
                stderr=err,
                env=environment(home, {**_PLAIN, **(env or {})}),
                cwd=home,
                start_new_session=True,
                # So that Ctrl-C is a signal whenever no prompt reads it as a key.
                preexec_fn=_take_terminal if terminal else None,
            )
            if terminal:
                os.close(slave)
        self._out = self._master if terminal else _fileno(self._process.stdout)

    def __enter__(self) -> "Chat":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def say(self, line: str) -> None:
        """Type a line."""
        data = line.encode("utf-8", "surrogateescape")
        if self._master >= 0:
            os.write(self._master, data + b"\r")
        else:
            os.write(_fileno(self._process.stdin), data + b"\n")

    def press(self, keys: str) -> None:
        """Press keys of a terminal, without a Return."""
        os.write(self._master, keys.encode())

    def expect(self, pattern: str, *, seconds: float = 30) -> "re.Match[str]":
        """Wait until the output matches, and consume it up to there."""
        found = self.find(pattern, seconds=seconds)
        if found is None:
            raise AssertionError(
                f"{pattern!r} did not appear; so far:\n{self.seen}\nstderr:\n{self.errors}"
            )
        return found

    def find(self, pattern: str, *, seconds: float) -> "re.Match[str] | None":
        """Do the same; None when the time is up, or the process ended."""
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.output, re.DOTALL)
            if found:
                self.output = self.output[found.end() :]
                return found
            if time.monotonic() > end or not self._read_more(end):
                return None

    def end(self, *, seconds: float = 30) -> int:
        """End the input, read the rest, and return the exit code."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        end = time.monotonic() + seconds
        # While a line is printed above the prompt, the kernel eats a Ctrl-D: a person presses again.
        while self._master >= 0 and self.running and time.monotonic() < end:
            os.write(self._master, b"\x04")
            again = min(end, time.monotonic() + AGAIN_SECONDS)
            while self._read_more(again) and self.running:
                pass
        while self._read_more(end):
            pass
        return self._process.wait(max(0.1, end - time.monotonic()))

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def wait(self, *, seconds: float = 30) -> int:
        return self._process.wait(seconds)

    def kill(self) -> None:
        """SIGKILL, by pid."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(10)

    @property
    def errors(self) -> str:
        """What it said on stderr, and the end of its log."""
        log = self._errors.parent / "logs" / "gateway.log"
        said = self._errors.read_text(encoding="utf-8", errors="replace")
        return said + (log.read_text(encoding="utf-8")[-4000:] if log.exists() else "")

    def _read_more(self, end: float) -> bool:
        ready, _, _ = select.select([self._out], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._out, 1 << 16)
        except OSError:
            # A pseudo-terminal whose other side is closed.
            return False
        self.raw += data
        text = self._cut + self._decoder.decode(data)
        cut = _CUT_ESCAPE.search(text)
        text, self._cut = (text[: cut.start()], cut[0]) if cut else (text, "")
        text = _ESCAPES.sub("", text).replace("\r", "")
        self.output += text
        self.seen += text
        return bool(data)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _fileno(stream: object) -> int:
    number = getattr(stream, "fileno", None)
    if not callable(number):
        raise TypeError("the process has no such stream")
    return int(str(number()))
