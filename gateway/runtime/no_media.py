"""The media folder of a process that has none: every file is refused, and whoever gave it is told."""

from collections.abc import AsyncIterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from gateway.domain.errors import FileUnreadable, FileUnwritable
from gateway.domain.files import Kept

_NOWHERE: Final = "files are not kept here"


class NoMedia:
    """Implements `gateway.ports.Media`."""

    def path(self, key: str) -> Path:
        """Return where a file would be."""
        return Path("/nonexistent") / key

    async def keep(self, pieces: AsyncIterable[bytes], *, key: str, limit: int) -> Kept:
        """Refuse a file."""
        raise FileUnwritable(_NOWHERE)

    async def copy(self, source: str, *, key: str, limit: int) -> Kept:
        """Refuse a file."""
        raise FileUnwritable(_NOWHERE)

    async def read(self, key: str, *, limit: int) -> bytes:
        """Say that there is none."""
        raise FileUnreadable(key, "is not kept here")

    async def remove(self, keys: Sequence[str]) -> None:
        """Do nothing: there is none."""

    async def left_behind(self, *, before: datetime) -> Sequence[str]:
        """Return nothing: there is none."""
        return ()
