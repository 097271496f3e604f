"""Cuts a byte stream into lines, in time linear in its length and in bounded memory."""

from dataclasses import dataclass
from typing import Final

HEAD: Final = 4096


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line above the limit; only its first bytes were kept."""

    head: bytes


class LineSplitter:
    """Feed it chunks; it returns the lines that ended in them."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        """Return the finished lines, without their ends."""
        *ended, rest = chunk.split(b"\n")
        lines = [self._finish_with(part) for part in ended]
        self._add(rest)
        return lines

    def finish(self) -> list[bytes | TooLong]:
        """Return the last line when the stream ended without a line end."""
        return [self._finish_with(b"")] if self._size or self._head is not None else []

    def _add(self, part: bytes) -> None:
        if self._head is not None or not part:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            self._head = b"".join(self._parts)[:HEAD]
            self._parts = []
            self._size = 0

    def _finish_with(self, part: bytes) -> bytes | TooLong:
        self._add(part)
        line = b"".join(self._parts) if self._head is None else TooLong(self._head)
        self._parts = []
        self._size = 0
        self._head = None
        return line
