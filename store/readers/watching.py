"""Sees the commits of another process when nobody tells of them: for who reads without a gateway.

A change of the log file comes before its commit can be read. So a file event only begins a short
ladder of looks at `PRAGMA data_version`, which is another one as soon as there is something to read.
"""

import asyncio
import logging
import sqlite3
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import aiosqlite

from store.engine import open_reader

if TYPE_CHECKING:
    from asyncinotify import Inotify

logger = logging.getLogger(__name__)

LADDER_SECONDS: Final = (0.0002, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
"""Between looks after a file event; a commit that takes its disk longer waits for the readers' poll."""
POLL_SECONDS: Final = 0.05
"""Between looks where files tell nothing."""
BUSY_SECONDS: Final = 1.0

_CHUNK: Final = 64


async def watch_commits(path: Path, notify: Callable[[], None]) -> None:
    """Call `notify` after each commit of another process, also of the one that makes the file.

    The directory must be there.
    """
    async with _version_of(path) as version, _files(path) as files:
        seen = await version()
        notify()
        while True:
            await files.changed()
            seen = await _climb(version, files, seen, notify)


class _Files(Protocol):
    """Tells when a file of the store may have changed."""

    async def changed(self, *, within: float | None = None) -> bool:
        """Return True once one has; False after that many seconds."""
        ...


async def _climb(
    version: "_Version", files: _Files, seen: int | None, notify: Callable[[], None]
) -> int | None:
    step = 0
    while step < len(LADDER_SECONDS):
        now = await version()
        if now != seen:
            notify()
            return now
        step = 0 if await files.changed(within=LADDER_SECONDS[step]) else step + 1
    return seen


class _Version:
    """Asks one connection for the store's version, which another's commit changes; None without a store."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: aiosqlite.Connection | None = None

    async def __call__(self) -> int | None:
        try:
            if self._connection is None:
                self._connection = await self._connect()
            (row,) = await self._connection.execute_fetchall("PRAGMA data_version")
        except sqlite3.Error as error:
            logger.debug("the store's version cannot be read: %s", error)
            await self.close()
            return None
        return int(row[0])

    async def close(self) -> None:
        """End the connection; the next look opens the file anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connect(self) -> aiosqlite.Connection:
        return await aiosqlite.Connection(
            lambda: open_reader(self._path, busy_seconds=BUSY_SECONDS), _CHUNK
        )


@asynccontextmanager
async def _version_of(path: Path) -> AsyncGenerator[_Version]:
    version = _Version(path)
    try:
        yield version
    finally:
        await version.close()


class _Told:
    """What the kernel tells of the store's directory."""

    def __init__(self) -> None:
        self._told = asyncio.Event()

    def tell(self) -> None:
        self._told.set()

    async def changed(self, *, within: float | None = None) -> bool:
        try:
            async with asyncio.timeout(within):
                await self._told.wait()
        except TimeoutError:
            return False
        self._told.clear()
        return True


class _Polled:
    """Files that tell nothing: each look is as good as another."""

    async def changed(self, *, within: float | None = None) -> bool:
        await asyncio.sleep(POLL_SECONDS if within is None else within)
        return within is None


@asynccontextmanager
async def _files(path: Path) -> AsyncGenerator[_Files]:
    if sys.platform != "linux":
        yield _Polled()
        return
    from asyncinotify import Inotify, Mask

    with ExitStack() as stack:
        try:
            inotify = stack.enter_context(Inotify())
            # The directory, and not the log: that one comes and goes.
            # The library says of a path only that it is one.
            inotify.add_watch(path.parent, Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO)  # pyright: ignore[reportUnknownMemberType]
        except OSError as error:
            logger.warning("the files of %s tell nothing: %s", path.parent, error.strerror)
            yield _Polled()
            return
        told = _Told()
        listening = asyncio.create_task(_listen(inotify, path.name, told), name="store:files")
        try:
            yield told
        finally:
            listening.cancel()
            await asyncio.wait([listening])


async def _listen(inotify: "Inotify", name: str, told: _Told) -> None:
    async for event in inotify:
        if event.name is not None and event.name.name.startswith(name):
            told.tell()
