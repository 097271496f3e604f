"""What the core needs for files: adapters that fetch them, a folder that keeps them, rows about them."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from gateway.domain.files import Kept
from gateway.domain.ids import AttachmentId, MessageId, Place
from gateway.domain.message import Attachment
from gateway.domain.operations.files import PendingFile, Room, SettleFile


class FileFetching(Protocol):
    """Optional port: an adapter whose messages come with files."""

    def fetch(self, file: Attachment) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a file by its `ref`; its bytes come in pieces, never as a whole.

        Raises:
            FileTooLarge: The platform does not hand it over.
            FileGone: The platform has it no longer.
            FileUnavailable: It could not be had now.
        """
        ...


class Media(Protocol):
    """The folder of files in and out, by key; nobody else can read it."""

    def path(self, key: str) -> Path:
        """Return where a file is.

        Raises:
            ValueError: It is no key.
        """
        ...

    async def keep(self, pieces: AsyncIterable[bytes], *, key: str, limit: int) -> Kept:
        """Write a file, whole or not at all; under a key that is taken it takes the place.

        Raises:
            FileTooLarge: More than `limit` bytes came; the rest was not read.
            FileUnwritable: The folder cannot take it.
        """
        ...

    async def copy(self, source: str, *, key: str, limit: int) -> Kept:
        """Copy a regular file of this machine, found by an absolute path and opened once.

        Raises:
            FileTooLarge: It has more than `limit` bytes.
            FileUnreadable: It is none, a link, one of our own secrets, or may not be read.
            FileUnwritable: The folder cannot take it.
        """
        ...

    async def read(self, key: str, *, limit: int) -> bytes:
        """Return a file, at most its first `limit` bytes.

        Raises:
            FileUnreadable: It is not there.
        """
        ...

    async def remove(self, keys: Sequence[str]) -> None:
        """Delete files; one that is not there is no trouble."""
        ...

    async def left_behind(self, *, before: datetime) -> Sequence[str]:
        """Return the keys of files last written before then; half written ones of that age go."""
        ...


class FileStore(Protocol):
    """The part of the store that records files."""

    async def settle_file(self, settle: SettleFile) -> bool:
        """Record what became of a pending file; False when that is known already."""
        ...


class Files(Protocol):
    """What the store knows of files."""

    async def of(self, messages: Sequence[MessageId]) -> Mapping[MessageId, tuple[Attachment, ...]]:
        """Return the files of messages, those without any left out."""
        ...

    async def pending(self, *, after: AttachmentId | None = None) -> Sequence[PendingFile]:
        """Return files that were announced and are not here, oldest first, those behind `after`."""
        ...

    async def room(self, place: Place) -> Room:
        """Return what the files take that are kept."""
        ...

    async def unknown(self, keys: Sequence[str]) -> Sequence[str]:
        """Return those keys that no row names."""
        ...
