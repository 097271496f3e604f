"""The read ports of `gateway.ports` on the SQLite file. Nothing here can write."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gateway.ports import Clock, Readers
from store.readers.books import BookReader
from store.readers.channels import ChannelReader
from store.readers.conversations import ConversationReader
from store.readers.database import open_database
from store.readers.deliveries import DeliveryReader
from store.readers.events import Bell, Events
from store.readers.files import FileReader
from store.readers.inbox import InboxReader
from store.readers.pairings import PairingReader
from store.readers.questions import QuestionReader
from store.readers.rules import RuleReader
from store.readers.sent import SentReader

__all__ = ["POLL_SECONDS", "OpenReaders", "open_readers"]

POLL_SECONDS: Final = 2.0
"""Waiters look again this often without being told, since a hint may be lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenReaders:
    """The ports, and `notify`: called on the loop after a commit that wrote an event.

    `watch` calls it for the commits of another process, until it is cancelled.
    """

    ports: Readers
    notify: Callable[[], None]
    watch: Callable[[], Coroutine[Any, Any, None]]


@asynccontextmanager
async def open_readers(
    path: Path, *, clock: Clock, late: bool = False
) -> AsyncGenerator[OpenReaders]:
    """Open the read ports of a store; they close with the block.

    `late`: a store that is not there yet reads as an empty one.

    Raises:
        NotFound: There is no such file.
    """
    bell = Bell()
    async with open_database(path, late=late) as database:
        ports = Readers(
            events=Events(database, bell),
            inbox=InboxReader(database),
            conversations=ConversationReader(database),
            questions=QuestionReader(database, clock),
            rules=RuleReader(database),
            channels=ChannelReader(database),
            deliveries=DeliveryReader(database),
            files=FileReader(database),
            sent=SentReader(database),
            books=BookReader(database),
            pairings=PairingReader(database),
        )
        poll = asyncio.create_task(_poll(bell, clock), name="store:poll")
        try:
            yield OpenReaders(ports=ports, notify=bell.ring, watch=lambda: _watch(path, bell.ring))
        finally:
            poll.cancel()
            await asyncio.wait([poll])


async def _watch(path: Path, notify: Callable[[], None]) -> None:
    # Who is told of commits by their writer needs none of it.
    from store.readers.watching import watch_commits

    await watch_commits(path, notify)


async def _poll(bell: Bell, clock: Clock) -> None:
    while True:
        await clock.sleep(POLL_SECONDS)
        bell.ring()
