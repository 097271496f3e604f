"""Lines that somebody types or pipes while something else goes on: a wait for one can be given up."""

import asyncio
import os
import signal
import stat
import sys
from typing import IO, TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

MAX_LINE: Final = 1 << 20


class Lines(Protocol):
    """Where lines come from. `asks`: a prompt is shown."""

    asks: bool

    async def next(self, prompt: str) -> str:
        """Return the next line; waits for ever when no more can come."""
        ...

    def close(self) -> None:
        """Read no more."""
        ...


class TerminalLines:
    """Asks at the terminal. The kernel's own lines end at 4,096 characters, and a URL may not."""

    asks = True

    def __init__(self) -> None:
        self._session: PromptSession[str] | None = None

    async def next(self, prompt: str) -> str:
        """Return what is typed; Ctrl-D ends the asking, Ctrl-C the process."""
        session = self._session or _session()
        self._session = session
        try:
            return await session.prompt_async(prompt, handle_sigint=False)
        except EOFError:
            pass
        except KeyboardInterrupt:
            # Ctrl-C is a key here; it ends the process as the signal does everywhere else.
            signal.raise_signal(signal.SIGINT)
        return await _never()

    def close(self) -> None:
        """Do nothing: the terminal is as it was whenever nobody asks."""


class PipedLines:
    """Reads standard input as it comes, when it is a pipe or a socket."""

    asks = False

    def __init__(self) -> None:
        self._reader: asyncio.StreamReader | None = None
        self._transport: asyncio.BaseTransport | None = None

    async def next(self, prompt: str) -> str:
        """Return the next line; shows no prompt."""
        del prompt
        reader = self._reader or await self._open()
        if reader is None:
            return await _never()
        try:
            line = await reader.readline()
        except ValueError:
            # It is too long to be anything, and its end is not known.
            line = b""
        return line.decode("utf-8", "replace") if line else await _never()

    def close(self) -> None:
        """Read no more."""
        if self._transport is not None:
            self._transport.close()

    async def _open(self) -> asyncio.StreamReader | None:
        pipe = _piped()
        if pipe is None:
            return None
        self._reader = reader = asyncio.StreamReader(limit=MAX_LINE)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        return reader


def _piped() -> IO[bytes] | None:
    """Return standard input anew, None when it is neither a pipe nor a socket."""
    # A stream is None when its descriptor was closed before the start.
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        return None
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return None
    return os.fdopen(os.dup(sys.stdin.fileno()), "rb", 0)


def _session() -> "PromptSession[str]":
    # Imported for who is asked: it takes a while.
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    return PromptSession(output=create_output(stdout=sys.stderr))


async def _never() -> str:
    return await asyncio.get_running_loop().create_future()
