"""One server process: its pipes, its exit and its end. Knows no JSON-RPC.

The event loop's callbacks do the reading, so a line costs no task switch of its own.
"""

import asyncio
from collections import deque
from typing import Final, cast

from mcp_host.stderr import StderrTail
from mcp_host.transports.lines import LineSplitter, TooLong
from mcp_host.transports.messages import MAX_MESSAGE

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
QUEUED_BYTES: Final = 1 << 20
UNREAD_BYTES: Final = 64 << 20
EXIT_NEWS_SECONDS: Final = 1.0
LEFT_SECONDS: Final = 0.25
"""How long what an exited process has written is read; a child of its own may hold the pipe open."""


class ServerProcess(asyncio.SubprocessProtocol):
    """Collects lines of stdout, keeps the end of stderr, writes to stdin."""

    def __init__(self, *, stderr: StderrTail) -> None:
        self.exited = asyncio.Event()
        self.stderr = stderr
        self._transport: asyncio.SubprocessTransport | None = None
        self._splitter = LineSplitter(limit=MAX_MESSAGE)
        self._lines: deque[bytes | TooLong] = deque()
        self._queued = 0
        self._reading_paused = False
        self._news = asyncio.Event()
        self._ended = False
        self._left: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._stderr_closed = asyncio.Event()

    # --- called by the event loop ---------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == STDERR:
            self.stderr.feed(data)
            return
        self._take(self._splitter.feed(data))
        if self._queued > QUEUED_BYTES and not self._reading_paused:
            self._reading_paused = True
            self._read_pipe().pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        match fd:
            case 1:
                self._finish_output()
            case 2:
                self.stderr.finish()
                self._stderr_closed.set()
            case _:
                self._writable.set()

    def process_exited(self) -> None:
        self.exited.set()
        self._read_what_is_left()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # --- for the transport ----------------------------------------------------

    @property
    def pid(self) -> int:
        """The process id, which is its group's too."""
        return self._spawned().get_pid()

    async def next_line(self) -> bytes | TooLong | None:
        """Return the next line of stdout, None at its end."""
        while not self._lines:
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        line = self._lines.popleft()
        self._queued -= _size(line)
        if self._reading_paused and not self._lines:
            self._reading_paused = False
            self._read_pipe().resume_reading()
        return line

    def write(self, data: bytes) -> bool:
        """Hand over the bytes whole; False when none of them can arrive any more."""
        pipe = self._write_pipe()
        if pipe is None or pipe.is_closing() or self.exited.is_set():
            return False
        if pipe.get_write_buffer_size() > UNREAD_BYTES:
            return False
        pipe.write(data)
        return True

    async def drained(self) -> None:
        """Return when the process reads again."""
        await self._writable.wait()

    def close_stdin(self) -> None:
        """Tell the process that nothing more comes."""
        pipe = self._write_pipe()
        if pipe is None:
            return
        if pipe.get_write_buffer_size():
            # Closing would wait for a process that does not read.
            pipe.abort()
        else:
            pipe.close()

    def close(self) -> None:
        """Let go of the pipes; the process must have been ended."""
        if self._left is not None:
            self._left.cancel()
        self._spawned().close()

    async def how_it_ended(self) -> str:
        """Say with what code it exited and what it said last."""
        try:
            async with asyncio.timeout(EXIT_NEWS_SECONDS):
                await self.exited.wait()
                await self._stderr_closed.wait()
        except TimeoutError:
            pass
        code = self._spawned().get_returncode()
        how = "server closed its output" if code is None else f"server {_exit_text(code)}"
        return f"{how}: {self.stderr.last_line}" if self.stderr.last_line else how

    def _read_what_is_left(self) -> None:
        if not self._ended:
            loop = asyncio.get_running_loop()
            self._left = loop.call_later(LEFT_SECONDS, self._finish_left)

    def _finish_left(self) -> None:
        if self._reading_paused:
            self._read_what_is_left()
        else:
            self._finish_output()

    def _finish_output(self) -> None:
        if not self._ended:
            self._take(self._splitter.finish())
            self._ended = True
            self._news.set()

    def _take(self, lines: list[bytes | TooLong]) -> None:
        if lines:
            self._lines.extend(lines)
            self._queued += sum(map(_size, lines))
            self._news.set()

    def _spawned(self) -> asyncio.SubprocessTransport:
        if self._transport is None:
            raise RuntimeError("the process was not spawned")
        return self._transport

    def _write_pipe(self) -> asyncio.WriteTransport | None:
        return cast("asyncio.WriteTransport | None", self._spawned().get_pipe_transport(STDIN))

    def _read_pipe(self) -> asyncio.ReadTransport:
        return cast("asyncio.ReadTransport", self._spawned().get_pipe_transport(STDOUT))


def _size(line: bytes | TooLong) -> int:
    return len(line) if isinstance(line, bytes) else len(line.head)


def _exit_text(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
