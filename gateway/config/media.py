"""The folder of a home in which files of messages are kept: written whole, read by nobody else."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncIterable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from gateway.config.chosen import open_chosen
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
        fresh = await _writing(_Fresh, self._folder)
        try:
            async for piece in pieces:
                if fresh.size + len(piece) > limit:
                    raise FileTooLarge(limit)
                await _writing(fresh.add, piece)
            await _writing(fresh.put, target)
        except BaseException:
            # Not in a thread: a cancelled task could not wait for it.
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
    """A file that nobody sees under its name before it is whole."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{HALF_WRITTEN}{secrets.token_hex(8)}"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        self._file = os.fdopen(descriptor, "wb")
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def add(self, piece: bytes) -> None:
        self._file.write(piece)
        self._digest.update(piece)
        self.size += len(piece)

    def put(self, target: Path) -> None:
        """Make it durable under its name."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._path.replace(target)
        directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def drop(self) -> None:
        """Leave nothing of it."""
        with suppress(OSError):
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
