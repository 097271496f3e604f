"""The store of a home without a running gateway: reading it beside one, and deciding in its place."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.domain.errors import NotFound
from gateway.ports import Readers, Store

if TYPE_CHECKING:
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.runtime.decisions import Decisions
    from gateway.runtime.pairing import PairingDesk


@dataclass(frozen=True, slots=True, kw_only=True)
class Offline:
    """What a shell command may do while no gateway runs."""

    store: Store
    readers: Readers
    decisions: "Decisions"
    pairing: "PairingDesk"


@asynccontextmanager
async def open_reading(home: "Home") -> AsyncGenerator[Readers | None]:
    """Read the store of a home, whoever writes it; None when there is none yet.

    Raises:
        StoreBusy: It cannot be read.
    """
    from gateway.runtime.clock import SystemClock
    from store.readers import open_readers

    opened = open_readers(home.state_db, clock=SystemClock())
    try:
        found = await opened.__aenter__()
    except NotFound:
        yield None
        return
    try:
        yield found.ports
    finally:
        await opened.__aexit__(None, None, None)


@asynccontextmanager
async def open_deciding(
    home: "Home", loaded: "Loaded", *, environ: Mapping[str, str], operator: str
) -> AsyncGenerator[Offline]:
    """Hold the home and decide in the place of a gateway; its cards are closed at the next start.

    Raises:
        HomeLocked: A process holds the home after all.
        StoreError: The store cannot be used.
    """
    from adapters.terminal.ids import PLATFORM
    from adapters.terminal.markup import TerminalRenderer
    from gateway.app.platforms import renderers_of, with_profile
    from gateway.runtime.access import Access
    from gateway.runtime.clock import SystemClock
    from gateway.runtime.decisions import Decisions
    from gateway.runtime.pairing import PairingDesk
    from gateway.runtime.wakeups import Wakeups
    from store import open_store
    from store.lock import hold_home

    config, clock = loaded.config, SystemClock()
    with hold_home(home.path):
        async with open_store(home.state_db, clock=clock) as opened:
            configured = renderers_of(config, with_profile(home, environ))
            renderers = {PLATFORM: TerminalRenderer(), **configured}
            access = Access(config.access, operators=frozenset({operator}))
            store, readers, wakeups = opened.store, opened.readers, Wakeups()
            yield Offline(
                store=store,
                readers=readers,
                decisions=Decisions(
                    store,
                    readers.questions,
                    renderers,
                    access,
                    wakeups,
                    clock,
                    config.approvals,
                ),
                pairing=PairingDesk(store, readers.pairings, renderers, access, wakeups, clock),
            )
