"""Fetches the files of accepted messages into the media folder, beside everything else.

A message is stored and acknowledged before its files are asked for; what is not here yet is found
again after a restart. A file that never comes is said to its chat and to the model, and the turn
goes on without it.
"""

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Final
from weakref import WeakValueDictionary

from gateway.domain.delivery import Origin
from gateway.domain.errors import (
    FileError,
    FileTooLarge,
    FileUnavailable,
    FileUnwritable,
)
from gateway.domain.files import FileState, Kept, file_key, in_words
from gateway.domain.ids import Account, AttachmentId, MessageId
from gateway.domain.message import Attachment
from gateway.domain.operations.deliveries import Enqueue
from gateway.domain.operations.files import PendingFile, SettleFile
from gateway.ports import Clock, FileFetching, Files, FileStore, Media, Renderer
from gateway.runtime.commits import Commits
from gateway.runtime.persist import persist
from gateway.runtime.wakeups import Wakeups
from gateway.telemetry.context import bind
from gateway.telemetry.faults import FaultPoint, reach

logger = logging.getLogger(__name__)

MAX_FILE_BYTES: Final = 20_000_000
MAX_CONVERSATION_BYTES: Final = 1_000_000_000
MAX_KEPT_BYTES: Final = 10_000_000_000
"""What all files together may take; retention makes room."""
MAX_FETCHES: Final = 8
MAX_FETCHES_OF_CHAT: Final = 2
FETCH_SECONDS: Final = 180.0
MAX_TRIES: Final = 4
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
PREFIX: Final = "in"


class Downloads:
    """One for the process; `fetching` are the adapters whose messages come with files."""

    def __init__(
        self,
        *,
        store: FileStore,
        files: Files,
        media: Media,
        fetching: Mapping[Account, FileFetching],
        renderers: Mapping[str, Renderer],
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._store = store
        self._files = files
        self._media = media
        self._fetching = fetching
        self._renderers = renderers
        self._wakeups = wakeups
        self._clock = clock
        self._settled = Commits()
        self._slots = asyncio.Semaphore(MAX_FETCHES)
        # Each as long as a task waits for it.
        self._chats: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def run(self) -> None:
        """Fetch what is not here, also from before this start, until cancelled."""
        last: AttachmentId | None = None
        async with asyncio.TaskGroup() as tasks:
            while True:
                found = await self._pending(last)
                for item in found:
                    last = item.file.id
                    with bind(conversation=item.place.session_key):
                        tasks.create_task(self._take(item), name=f"file:{item.file.id}")
                if not found:
                    await self._wakeups.wait_files()

    async def _pending(self, after: AttachmentId | None) -> Sequence[PendingFile]:
        return await persist(lambda: self._files.pending(after=after), clock=self._clock)

    async def until_settled(self, messages: Sequence[MessageId]) -> None:
        """Return once every file of these messages is here, or it is known that it never will be."""

        async def look() -> bool | None:
            found = await self._files.of(messages)
            files = [file for each in found.values() for file in each]
            return None if any(file.state is FileState.PENDING for file in files) else True

        await self._settled.until(look)

    async def _take(self, item: PendingFile) -> None:
        key = item.place.session_key
        of_chat = self._chats.get(key) or asyncio.Semaphore(MAX_FETCHES_OF_CHAT)
        self._chats[key] = of_chat
        try:
            async with of_chat, self._slots:
                settle = await self._outcome(item)
                await persist(lambda: self._store.settle_file(settle), clock=self._clock)
        except Exception:
            # One file never ends the others. Its row says `pending`: the next start tries again.
            logger.exception("what became of file %s is not recorded", item.file.id)
        finally:
            self._settled.ring()
            self._wakeups.deliveries()

    async def _outcome(self, item: PendingFile) -> SettleFile:
        try:
            kept = await self._fetched(item)
        except FileTooLarge as error:
            return self._lost(item, FileState.REFUSED, str(error))
        except FileError as error:
            return self._lost(item, FileState.FAILED, str(error))
        except Exception:
            logger.exception("file %s failed", item.file.id)
            return self._lost(item, FileState.FAILED, "something went wrong on our side")
        logger.info("file %s is here: %d bytes", item.file.id, kept.size)
        return SettleFile(
            file=_id(item.file),
            state=FileState.STORED,
            key=kept.key,
            size=kept.size,
            sha256=kept.sha256,
        )

    async def _fetched(self, item: PendingFile) -> Kept:
        """Return the file once it is kept, after as many tries as its errors allow.

        Raises:
            FileError: It is not to be had.
        """
        adapter = self._fetching.get((item.place.platform, item.place.account))
        if adapter is None or item.file.ref is None:
            raise FileUnavailable(item.place.platform, "it cannot be asked for")
        size = item.file.size or 0
        if size > MAX_FILE_BYTES:
            raise FileTooLarge(MAX_FILE_BYTES, size)
        await self._check_room(item, size)
        wait = FIRST_WAIT_SECONDS
        for _ in range(MAX_TRIES - 1):
            try:
                return await self._fetch(adapter, item)
            except (FileUnavailable, FileUnwritable) as error:
                asked = error.retry_after if isinstance(error, FileUnavailable) else None
                pause = min(max(asked or 0.0, wait), LONGEST_WAIT_SECONDS)
                logger.warning("file %s: %s; next try in %g s", item.file.id, error, pause)
            await self._clock.sleep(pause)
            wait *= 4
        return await self._fetch(adapter, item)

    async def _fetch(self, adapter: FileFetching, item: PendingFile) -> Kept:
        file = item.file
        # The same for every try, so that a repeat takes the place of what a crash left.
        mark = hashlib.sha256((file.ref or "").encode("utf-8", "replace")).hexdigest()[:12]
        key = file_key(PREFIX, f"{file.id}-{mark}", file.name)
        try:
            async with asyncio.timeout(FETCH_SECONDS), adapter.fetch(file) as pieces:
                await reach(FaultPoint.FILE_FETCHING)
                kept = await self._media.keep(pieces, key=key, limit=MAX_FILE_BYTES)
                await reach(FaultPoint.FILE_KEPT)
                return kept
        except TimeoutError as error:
            raise FileUnavailable(item.place.platform, "no answer in time") from error

    async def _check_room(self, item: PendingFile, size: int) -> None:
        room = await persist(lambda: self._files.room(item.place), clock=self._clock)
        for used, limit, whose in (
            (room.conversation, MAX_CONVERSATION_BYTES, "the files of this chat"),
            (room.everything, MAX_KEPT_BYTES, "all files"),
        ):
            if used + size > limit:
                raise FileUnwritable(f"{whose} take {in_words(used)} of {in_words(limit)}")

    def _lost(self, item: PendingFile, state: FileState, problem: str) -> SettleFile:
        logger.warning("file %s did not come: %s", item.file.id, problem)
        renderer = self._renderers.get(item.place.platform)
        words = f"I could not take {item.file.name or 'the file'}: {problem}."
        parts = () if renderer is None else renderer.text(words)
        notice = Enqueue(
            place=item.place,
            group_key=f"file:{item.file.id}",
            parts=parts,
            origin=Origin.NOTICE,
        )
        return SettleFile(
            file=_id(item.file), state=state, problem=problem, notice=notice if parts else None
        )


def _id(file: Attachment) -> AttachmentId:
    if file.id is None:
        raise ValueError("a file that is awaited has a row")
    return file.id
