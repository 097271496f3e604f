"""What the owner of a connection is told by others; told twice before it looks, it hears once."""

import asyncio
from enum import Enum, auto


class Note(Enum):
    """`LINK_DOWN`: the transport ended. `UNANSWERED`: the server is deaf. `RECONNECT`: in any case.

    `TRY_NOW`: somebody needs it. `OLD`, `UNUSED`: its process has had its time.
    `TOOLS_CHANGED`: its list should be read again.
    """

    LINK_DOWN = auto()
    UNANSWERED = auto()
    RECONNECT = auto()
    TRY_NOW = auto()
    OLD = auto()
    UNUSED = auto()
    TOOLS_CHANGED = auto()


class Mailbox:
    """An unordered set of notes with one reader; the more urgent kind is read first."""

    def __init__(self) -> None:
        self._notes: set[Note] = set()
        self._news = asyncio.Event()

    def put(self, note: Note) -> None:
        """Leave a note; returns at once."""
        self._notes.add(note)
        self._news.set()

    def drop(self, *notes: Note) -> None:
        """Forget notes that mean nothing any more."""
        self._notes.difference_update(notes)

    async def get(self) -> Note:
        """Return the most urgent note and forget it."""
        while not self._notes:
            self._news.clear()
            await self._news.wait()
        note = min(self._notes, key=lambda item: item.value)
        self._notes.discard(note)
        return note
