"""Where lines come from and go to: a pipe, or a person at a terminal."""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TextIO

from adapters.terminal.buttons import OpenCard

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings


class Screen(Protocol):
    """`sequential`: each line is one request, read only when the one before is answered."""

    @property
    def sequential(self) -> bool: ...

    async def read(self, card: Callable[[], OpenCard | None]) -> str | None:
        """Return the next line, None at the end of input."""
        ...

    def write(self, text: str) -> None:
        """Show a block of text at once."""
        ...


MAX_LINE_BYTES: Final = 4 << 20
MAX_SINGLE_DIGIT: Final = 9


def write_line(sink: TextIO, text: str) -> None:
    """Print and flush; characters the encoding lacks are replaced."""
    encoding = sink.encoding or "utf-8"
    sink.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sink.flush()


class Pipe:
    """Lines of a stream that is no terminal; answers are flushed as they come."""

    sequential = True

    def __init__(self, source: TextIO | None, sink: TextIO) -> None:
        """`source` None: standard input is closed, as at its end."""
        self._source = source
        self._sink = sink
        self._reader: asyncio.StreamReader | None = None

    async def read(self, card: Callable[[], OpenCard | None]) -> str | None:
        """Return the next line without its end; None at the end of the stream."""
        del card
        if self._source is None:
            return None
        if self._reader is None:
            self._reader = await self._open(self._source)
        raw = await self._reader.readline()
        return raw.decode("utf-8", "surrogateescape").rstrip("\r\n") if raw else None

    def write(self, text: str) -> None:
        """Print and flush."""
        write_line(self._sink, text)

    async def _open(self, source: TextIO) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        if _never_blocks(source):
            # epoll takes neither a plain file nor /dev/null.
            reader.feed_data(await asyncio.to_thread(source.buffer.read))
            reader.feed_eof()
            return reader
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), source
        )
        return reader


def _never_blocks(source: TextIO) -> bool:
    mode = os.fstat(source.fileno()).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not source.isatty())


class OneLine:
    """One request given beforehand; everything shown goes to `sink`."""

    sequential = True

    def __init__(self, line: str, sink: TextIO) -> None:
        self._line: str | None = line
        self._sink = sink

    async def read(self, card: Callable[[], OpenCard | None]) -> str | None:
        """Return the line once, then None."""
        del card
        line, self._line = self._line, None
        return line

    def write(self, text: str) -> None:
        """Print and flush."""
        write_line(self._sink, text)


class Keyboard:
    """A person at a terminal: history, completion, and digits that answer a card at once."""

    sequential = False

    def __init__(self, *, history: Path, words: Sequence[str]) -> None:
        self._history = history
        self._words = tuple(words)
        self._session: PromptSession[str] | None = None
        self._card: Callable[[], OpenCard | None] = lambda: None

    async def read(self, card: Callable[[], OpenCard | None]) -> str | None:
        """Return the next line; None on end of input (Ctrl-D), never after Ctrl-C."""
        from prompt_toolkit.patch_stdout import patch_stdout

        self._card = card
        session = self._session or self._open()
        self._session = session
        with patch_stdout(raw=True):
            try:
                # The library would take the process's own handler of the signal away.
                return await session.prompt_async(
                    lambda: "? " if card() else "> ", handle_sigint=False
                )
            except EOFError:
                return None
            except KeyboardInterrupt:
                # Ctrl-C is a key here; it ends the process as the signal does everywhere else.
                signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()
        return None

    def write(self, text: str) -> None:
        """Print above the line being typed."""
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def _open(self) -> "PromptSession[str]":
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import DynamicCompleter, WordCompleter
        from prompt_toolkit.history import FileHistory

        return PromptSession(
            history=FileHistory(str(self._history)),
            completer=DynamicCompleter(lambda: WordCompleter(self._choices(), sentence=True)),
            complete_while_typing=False,
            key_bindings=self._keys(),
        )

    def _choices(self) -> list[str]:
        card = self._card()
        return list(card.labels if card else self._words)

    def _keys(self) -> "KeyBindings":
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

        keys = KeyBindings()

        @Condition
        def by_number() -> bool:
            card = self._card()
            return card is not None and card.numbered and not card.reply_token

        for digit in "123456789":

            @keys.add(digit, filter=by_number)
            def choose(event: KeyPressEvent) -> None:
                buffer = event.current_buffer
                buffer.insert_text(event.data)
                card = self._card()
                if card and len(card.buttons) <= MAX_SINGLE_DIGIT and len(buffer.text) == 1:
                    buffer.validate_and_handle()

        return keys
