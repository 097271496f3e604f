"""What servers write to their standard error: the last lines for messages, all of it for the log.

Lines are made safe for a terminal and for a model; nothing is parsed.
"""

import os
from collections import deque
from collections.abc import Callable
from io import TextIOWrapper
from logging import INFO, Formatter, LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from gateway.domain.text import shorten, strip_terminal
from mcp_host.sanitize import clean_text

KEPT_LINES: Final = 20
MAX_LINE: Final = 2_000
LOG_BYTES: Final = 5 << 20

WriteLine = Callable[[str], None]


def no_log(line: str) -> None:
    """Take a line and keep nothing of it."""


def as_it_is(line: str) -> str:
    """Return a line of a process that was given no secret."""
    return line


class StderrTail:
    """The last lines of one process; every line also goes to `write`.

    Each goes through `redact` first: programs print their arguments and their environment.
    """

    def __init__(self, write: WriteLine, *, redact: Callable[[str], str] = as_it_is) -> None:
        self._write = write
        self._redact = redact
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._rest = b""

    @property
    def last_line(self) -> str:
        """The newest line that says something, or ""."""
        return next((line for line in reversed(self._lines) if line.strip()), "")

    def feed(self, chunk: bytes) -> None:
        """Take what the process wrote; a line without an end is cut at `MAX_LINE` bytes."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self.add(line)
        if len(rest) > MAX_LINE:
            self.add(rest)
            rest = b""
        self._rest = rest

    def add(self, line: bytes) -> None:
        """Take one line."""
        text = clean_text(strip_terminal(line.decode("utf-8", "replace"))).rstrip()
        # Before it is cut: half a secret is no longer known as one.
        text = shorten(self._redact(text), MAX_LINE)
        self._lines.append(text)
        self._write(text)

    def finish(self) -> None:
        """Take the rest that never got its line end."""
        if self._rest:
            self.add(self._rest)
            self._rest = b""


class StderrLog:
    """`logs/mcp-stderr.log`: one line per line of any server, bounded, readable by us alone."""

    def __init__(self, path: Path) -> None:
        self._file = _PrivateFile(path, maxBytes=LOG_BYTES, backupCount=1, delay=True)
        self._file.setFormatter(Formatter("%(asctime)s %(name)s: %(message)s"))

    def writer(self, server: str) -> WriteLine:
        """Return what writes lines of that server."""

        def write(line: str) -> None:
            # A record of its own: arguments are None, so a `%` in the line stays a `%`.
            self._file.emit(LogRecord(server, INFO, "", 0, line, None, None))

        return write

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        self._file.close()


class _PrivateFile(RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self.baseFilename, flags, 0o600)
        return TextIOWrapper(os.fdopen(file, "ab"), "utf-8", errors="backslashreplace")

    def handleError(self, record: LogRecord) -> None:
        """Lose the line: a full disk must not end the connection it came from."""
