"""A whole runtime over a real store, with a scripted model, tools and a chat in the process."""

import asyncio
import itertools
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.config.home import Home, make_private
from gateway.config.media import MediaFolder
from gateway.domain.delivery import Origin
from gateway.domain.errors import ModelRejected
from gateway.domain.ids import Actor, Place
from gateway.domain.message import Attachment, InboundEvent
from gateway.domain.operations.deliveries import Enqueue
from gateway.ports import (
    Clock,
    ModelProvider,
    Reacting,
    Readers,
    Renderer,
    Store,
    Streaming,
    ToolHost,
    Typing,
)
from gateway.ports.signing_in import SigningIn
from gateway.runtime.access import Access
from gateway.runtime.clock import SystemClock
from gateway.runtime.config import AccessConfig
from gateway.runtime.overrides import Overrides
from gateway.runtime.runtime import Edges, Runtime, RuntimeConfig
from store import open_store
from tests.fakes.agent_log import ListedLog
from tests.fakes.loopback import (
    ANNA,
    BEN,
    PLATFORM,
    Loopback,
    LoopbackRenderer,
    command,
    message,
    press,
    token_of,
)
from tests.fakes.tools import FakeTools

ADMIN = Actor(platform=PLATFORM, id="admin", name="Ada")
STRANGER = Actor(platform=PLATFORM, id="666", name="Stranger")


def access() -> Access:
    return Access(
        AccessConfig(admins=frozenset({str(ADMIN)})),
        allowed={PLATFORM: frozenset({ANNA.id, BEN.id})},
    )


@dataclass(slots=True, kw_only=True)
class House:
    """What a test sees of a running runtime; `tools` are empty where it runs real servers."""

    path: Path
    store: Store
    readers: Readers
    runtime: Runtime
    adapter: Loopback
    tools: FakeTools
    log: ListedLog
    _n: "itertools.count[int]" = field(default_factory=itertools.count)

    async def say(
        self,
        text: str,
        *,
        place: Place | None = None,
        sender: Actor = ANNA,
        files: tuple[Attachment, ...] = (),
        album: str = "",
    ) -> None:
        said = message(text, n=next(self._n), place=place, sender=sender, files=files, album=album)
        await self._emit(said)

    async def give(
        self, name: str, argument: str = "", *, place: Place | None = None, sender: Actor = ANNA
    ) -> None:
        await self._emit(command(name, argument, n=next(self._n), place=place, sender=sender))

    async def press(self, label: str, *, card: int = -1, sender: Actor = ANNA) -> None:
        await self.adapter.until(lambda: len(self.adapter.cards()) > max(card, 0))
        delivery = self.adapter.cards()[card]
        token = token_of(delivery, label)
        await self._emit(press(token, n=next(self._n), place=delivery.place, sender=sender))

    async def replies(self, count: int, *, place: Place | None = None) -> list[str]:
        """Return the texts sent to a place once there are `count`."""
        await self.adapter.until(lambda: len(self.adapter.texts(place)) >= count)
        return self.adapter.texts(place)

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Read the database as another program would."""
        return rows(self.path, statement, *values)

    async def _emit(self, event: InboundEvent) -> None:
        await self.runtime.intake.emit(event)


class CountedStore:
    """A store that counts what is asked of it, by operation."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> object:
        self.asked[name] += 1
        return getattr(self._store, name)


def rows(path: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(statement, values).fetchall()


@asynccontextmanager
async def running(
    home: Path,
    model: ModelProvider,
    *,
    tools: ToolHost | None = None,
    adapter: Loopback | None = None,
    config: RuntimeConfig | None = None,
    clock: Clock | None = None,
    renderer: Renderer | None = None,
    typing: Typing | None = None,
    streaming: Streaming | None = None,
    reacting: Reacting | None = None,
    signing: SigningIn | None = None,
    models: Mapping[str, ModelProvider] | None = None,
    overrides: Overrides | None = None,
    judge: Access | None = None,
    crash: bool = False,
    first: int = 0,
    watch: Callable[[Store], Store] = lambda store: store,
) -> AsyncGenerator[House]:
    """Run until the block ends; with `crash` it ends as abruptly as a process can from inside."""
    time = clock or SystemClock()
    path = home / "state.db"
    chats = adapter or Loopback()
    host = tools or FakeTools()
    log = ListedLog()
    async with open_store(path, clock=time) as opened, asyncio.TaskGroup() as tasks:
        store = watch(opened.store)
        runtime = Runtime(
            store=store,
            readers=opened.readers,
            edges=Edges(
                provider=model,
                host=host,
                adapters=[chats],
                renderers={PLATFORM: renderer or LoopbackRenderer()},
                fetching={(PLATFORM, ""): chats},
                media=folder_in(home),
                typing={(PLATFORM, ""): typing} if typing is not None else {},
                streaming={(PLATFORM, ""): streaming} if streaming is not None else {},
                reacting={(PLATFORM, ""): reacting} if reacting is not None else {},
                signing=signing,
                find_model=None if models is None else lambda name: found(models, name),
                overrides=overrides or Overrides(),
            ),
            access=judge or access(),
            clock=time,
            config=config or RuntimeConfig(),
            log=log,
        )
        task = tasks.create_task(runtime.run(), name="runtime")
        async with asyncio.timeout(10):
            await runtime.ready.wait()
        yield House(
            path=path,
            store=store,
            readers=opened.readers,
            runtime=runtime,
            adapter=chats,
            tools=host if isinstance(host, FakeTools) else FakeTools(),
            log=log,
            _n=itertools.count(first),
        )
        if crash:
            runtime.broker.stop()
            task.cancel()
        else:
            runtime.stop()


def found(models: Mapping[str, ModelProvider], name: str) -> ModelProvider:
    if name not in models:
        raise ModelRejected(name, "nobody serves it")
    return models[name]


def folder_in(home: Path) -> MediaFolder:
    """The media folder of a home."""
    make_private(Home(home).media)
    return MediaFolder(Home(home))


def enqueue(place: Place, text: str, *, key: str) -> Enqueue:
    """One text for a place, as `send` enqueues it."""
    parts = LoopbackRenderer().text(text)
    return Enqueue(place=place, group_key=key, parts=parts, origin=Origin.SEND)
