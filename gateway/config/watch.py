"""Watches the files of a home that people edit, and tells when what is in them is another.

Compares content: a file that is touched, saved unchanged or moved back is no change. Reads no
meaning into what it sees. The watching library loads with the first watch.
"""

import asyncio
import contextlib
import hashlib
import importlib
import logging
import os
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from gateway.config.document import MAX_BYTES
from gateway.config.home import Home
from gateway.ports import Clock

logger = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 0.2
"""How long the files must stay as they are: a writer that is half done goes on soon."""

MAX_LOOKS: Final = 5
"""A file that never rests is taken as it is after so many looks."""

RECHECK_MS: Final = 1_000
"""How often the files are compared when no news came: not every file system tells any."""

_DEBOUNCE_MS: Final = 400
_STEP_MS: Final = 100
_Content: TypeAlias = tuple[bytes | None, ...]
_Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class ConfigWatch:
    """Watches `config.yaml` and `.env` of one home, from when it is made; and where tokens are."""

    def __init__(self, home: Home, clock: Clock, *, settle: float = SETTLE_SECONDS) -> None:
        self._folder = home.path
        self._tokens = home.mcp_tokens
        self._busy = home.state_db.name
        """What the store writes all the time in the same folder."""

        self._files = (home.config_file, home.env_file)
        self._clock = clock
        self._settle = settle
        self._stamp = self._stamped()
        self._seen = self._read()

    async def run(
        self, changed: Callable[[], Awaitable[object]], *, beside: Callable[[], None] = lambda: None
    ) -> None:
        """Call `changed` after each change that has settled, one call at a time, until cancelled.

        `beside` is called whenever there may be news in the home, of the token files too.
        """
        while True:
            folders = self._folders()
            async with contextlib.aclosing(self._news(folders)) as news:
                async for told in news:
                    beside()
                    if await self._is_another(told=told):
                        await changed()
                    if self._folders() != folders:
                        # A link leads elsewhere by now.
                        break

    async def _news(self, folders: Sequence[Path]) -> AsyncGenerator[bool]:
        """Yield True when something happened in the folders, False when it is time to look."""
        # It takes a tenth of a second, and people are talked to meanwhile.
        await asyncio.to_thread(importlib.import_module, "watchfiles")
        # The library's types name one that need not be installed.
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

        ended = asyncio.Event()
        try:
            changes = awatch(
                *folders,
                watch_filter=lambda _, path: not Path(path).name.startswith(self._busy),
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                stop_event=ended,
                rust_timeout=RECHECK_MS,
                yield_on_timeout=True,
                recursive=False,
            )
            async with contextlib.aclosing(changes):
                async for happened in changes:
                    yield bool(happened)
        # The library has no list of what it raises; a failure of its thread comes in a group.
        except (OSError, RuntimeError, ExceptionGroup) as error:
            logger.warning("the configuration cannot be watched (%s): it is compared", error)
            while self._folders() == folders:
                await self._clock.sleep(RECHECK_MS / 1000)
                yield False
        finally:
            # Its thread looks at this, and nothing else ends it.
            ended.set()

    async def _is_another(self, *, told: bool) -> bool:
        """Say whether the files, at rest, hold something else than before."""
        stamp = await asyncio.to_thread(self._stamped)
        if stamp == self._stamp and not told:
            return False
        self._stamp = stamp
        content = await asyncio.to_thread(self._read)
        for _ in range(MAX_LOOKS):
            if content == self._seen:
                return False
            before = content
            await self._clock.sleep(self._settle)
            content = await asyncio.to_thread(self._read)
            if content == before:
                break
        self._seen = content
        return True

    def _folders(self) -> tuple[Path, ...]:
        """Return where something can happen to the files, links followed."""
        real = {Path(os.path.realpath(file)).parent for file in self._files}
        found = {self._folder, self._tokens, *real}
        return tuple(sorted(folder for folder in found if folder.is_dir()))

    def _stamped(self) -> _Stamp:
        return tuple(_stamp_of(file) for file in self._files)

    def _read(self) -> _Content:
        return tuple(_content_of(file) for file in self._files)


def _stamp_of(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _content_of(file: Path) -> bytes | None:
    """Return a hash of the content, None when there is nothing to read."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        with file.open("rb") as opened:
            # What is longer is refused anyway.
            return hashlib.sha256(opened.read(MAX_BYTES + 1)).digest()
    except OSError:
        return None
