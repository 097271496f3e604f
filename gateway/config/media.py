"""The folder of a home in which files of messages are kept: written whole, read by nobody else."""

import asyncio
import hashlib
import os
import secrets
import threading
from collections.abc import AsyncIterable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from gateway.config.chosen import open_chosen
from gateway.config.files import sync_directory
from gateway.config.home import FILE_MODE, Home
from gateway.domain.errors import FileTooLarge, FileUnreadable, FileUnwritable
from gateway.domain.files import Kept, is_key

PIECE_BYTES: Final = 1 << 18
HALF_WRITTEN: Final = ".part-"

Value = TypeVar("Value")


class MediaFolder:
    """Implements `gateway.ports.Media` on the media directory of a home that was created."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._folder = home.media

    def path(self, key: str) -> Path:
        """Return where a file is.

        Raises:
            ValueError: It is no key.
        """
        if not is_key(key):
            raise ValueError(f"{key!r} is no key of a file")
        return self._folder / key

    async def keep(self, pieces: AsyncIterable[bytes], *, key: str, limit: int) -> Kept:
        """Write a file piece by piece, whole or not at all."""
        target = self.path(key)
        fresh = _Fresh(self._folder)
        try:
            await _writing(fresh.open)
            async for piece in pieces:
                if fresh.size + len(piece) > limit:
                    raise FileTooLarge(limit)
                await _writing(fresh.add, piece)
            await _writing(fresh.put, target)
        except BaseException:
            # Not in a thread: a task that is cancelled could not wait for it.
            fresh.drop()
            raise
        return Kept(key=key, size=fresh.size, sha256=fresh.sha256)

    async def copy(self, source: str, *, key: str, limit: int) -> Kept:
        """Copy a regular file of this machine, found by an absolute path and opened once."""
        return await _writing(self._copied, source, self.path(key), limit)

    async def read(self, key: str, *, limit: int) -> bytes:
        """Return a file, at most its first `limit` bytes."""
        path = self.path(key)

        def read() -> bytes:
            with path.open("rb") as file:
                return file.read(limit)

        try:
            return await asyncio.to_thread(read)
        except OSError as error:
            raise FileUnreadable(key, "is not there any more") from error

    async def remove(self, keys: Sequence[str]) -> None:
        """Delete files; one that is not there is no trouble."""
        paths = [self.path(key) for key in keys if is_key(key)]

        def remove() -> None:
            for path in paths:
                path.unlink(missing_ok=True)

        await _writing(remove)

    async def left_behind(self, *, before: datetime) -> Sequence[str]:
        """Return the keys of files last written before then; half written ones of that age go."""
        return await _writing(lambda: list(self._old(before.timestamp())))

    def _old(self, before: float) -> Iterator[str]:
        with os.scandir(self._folder) as entries:
            for entry in entries:
                # One may go while the others are looked at.
                with suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_mtime >= before:
                        continue
                    if entry.name.startswith(HALF_WRITTEN):
                        Path(entry.path).unlink()
                    elif is_key(entry.name):
                        yield entry.name

    def _copied(self, source: str, target: Path, limit: int) -> Kept:
        with open_chosen(source, home=self._home) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise FileTooLarge(limit, size)
            fresh = _Fresh(self._folder)
            try:
                fresh.open()
                # It may grow while it is read.
                while piece := file.read(min(PIECE_BYTES, limit - fresh.size + 1)):
                    if fresh.size + len(piece) > limit:
                        raise FileTooLarge(limit)
                    fresh.add(piece)
                fresh.put(target)
            except BaseException:
                fresh.drop()
                raise
        return Kept(key=target.name, size=fresh.size, sha256=fresh.sha256)


class _Fresh:
    """A file that nobody sees under its name before it is whole.

    Whoever waits for a step in a thread may be cancelled while the step goes on: the lock lets `drop`
    wait for it, and nothing is begun after that.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{HALF_WRITTEN}{secrets.token_hex(8)}"
        self._file: BinaryIO | None = None
        self._digest = hashlib.sha256()
        self._busy = threading.Lock()
        self._dropped = False
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def open(self) -> None:
        with self._busy:
            if self._dropped:
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            self._file = os.fdopen(os.open(self._path, flags, FILE_MODE), "wb")

    def add(self, piece: bytes) -> None:
        with self._busy:
            if self._file is None or self._dropped:
                return
            self._file.write(piece)
            self._digest.update(piece)
            self.size += len(piece)

    def put(self, target: Path) -> None:
        """Make it durable under its name."""
        with self._busy:
            if self._file is None or self._dropped:
                return
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._path.replace(target)
            sync_directory(target.parent)

    def drop(self) -> None:
        """Leave nothing of it that is not under its name yet."""
        with self._busy:
            self._dropped = True
            with suppress(OSError):
                if self._file is not None:
                    self._file.close()
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


async def _writing(run: Callable[..., Value], *args: object) -> Value:
    """Run in a thread what writes to the disk, and translate its trouble.

    Raises:
        FileUnwritable: The disk is full, or the folder cannot be written.
    """
    try:
        return await asyncio.to_thread(run, *args)
    except OSError as error:
        raise FileUnwritable(error.strerror or type(error).__name__) from error
