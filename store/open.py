"""Opens the store of a home: its writer, its read ports, its health. Creates or migrates the file."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from gateway.ports import Clock, Readers, Store, StoreHealth
from store.readers import open_readers
from store.sqlite import SqliteStore
from store.writer import DEFAULT_PACE, Pace, Writer


class OpenStore:
    """A store in use: `store` writes, `readers` read what is committed."""

    def __init__(self, *, store: Store, readers: Readers, writer: Writer) -> None:
        self.store = store
        self.readers = readers
        self._writer = writer

    def health(self) -> StoreHealth:
        """Say how writing goes at the moment."""
        return self._writer.health


@asynccontextmanager
async def open_store(
    path: Path,
    *,
    clock: Clock,
    on_commit: Callable[[], None] | None = None,
    pace: Pace = DEFAULT_PACE,
) -> AsyncGenerator[OpenStore]:
    """Open the database at `path` until the block ends; the caller holds the home.

    `on_commit` is called in the event loop after each group commit.

    Raises:
        ForeignDatabase: The file belongs to another application.
        SchemaTooNew: A newer version of this program wrote it.
        StoreBroken: It is read-only, damaged or unreadable.
        StoreBusy: Another program kept it locked.
    """
    new_event: list[Callable[[], None]] = []

    def tell(wrote_event: bool) -> None:
        if wrote_event:
            for notify in new_event:
                notify()
        if on_commit is not None:
            on_commit()

    writer = Writer(path, clock=clock, pace=pace, on_commit=tell)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(writer.close)
        await writer.start()
        readers = await stack.enter_async_context(open_readers(path, clock=clock))
        new_event.append(readers.notify)
        yield OpenStore(store=SqliteStore(writer), readers=readers.ports, writer=writer)
