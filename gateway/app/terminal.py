"""`hermes chat` in its own process: the terminal, and everything it takes, put together."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.app.cadence import recurring, server_jobs
from gateway.app.live import LiveServers, keeping_current
from gateway.app.parts import Models, ending_on_signal, open_host, open_models
from gateway.app.platforms import with_profile
from gateway.domain.conversation import Activity
from gateway.domain.delivery import Delivery
from gateway.domain.errors import GatewayError
from gateway.domain.operations.turns import TurnEnd
from gateway.ports import Media, Readers

if TYPE_CHECKING:
    from adapters.terminal.adapter import TerminalAdapter
    from adapters.terminal.screen import Screen
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.config.schema import Config
    from gateway.runtime.runtime import Runtime
    from gateway.telemetry.redact import Redactor
    from mcp_host.host import McpHost
    from store.open import OpenStore

ONE_QUESTION_WAIT: Final = 30.0
"""Seconds that `hermes chat -q` gives cold servers before its turn (SPEC §7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalChat:
    """How `hermes chat` runs: on which screen, and whether somebody can answer cards there.

    `redactor` masks the logs; secrets that a reload brings are added to it. `toolsets` are the
    only ones it may use, none named is all.
    """

    screen: "Screen"
    redactor: "Redactor"
    interactive: bool = True
    toolsets: tuple[str, ...] = ()


async def run_terminal(
    home: "Home", loaded: "Loaded", chat: TerminalChat, *, environ: Mapping[str, str]
) -> bool:
    """Chat in-process until the input ends; False when its last turn failed.

    Raises:
        HomeLocked: Another process owns the home.
        OutputLost: The answers could not be written any more.
        Interrupted: SIGINT ended it.
        GatewayError: The store or the model cannot be opened.
    """
    from adapters.terminal.adapter import TerminalAdapter
    from adapters.terminal.ids import PLACE
    from gateway.config.media import MediaFolder
    from gateway.runtime.clock import SystemClock
    from store import open_store
    from store.lock import hold_home

    clock, commits = SystemClock(), CommitBell()
    async with AsyncExitStack() as stack:
        stack.enter_context(hold_home(home.path))
        store = await stack.enter_async_context(
            open_store(home.state_db, clock=clock, on_commit=commits.ring)
        )
        profile = with_profile(home, environ)
        models = await stack.enter_async_context(open_models(loaded.config, profile))
        live = LiveServers(home, loaded, environ, chat.redactor)
        host = await stack.enter_async_context(
            open_host(
                home, loaded.config, clock, live.load, on_demand=True, provider=models.default
            )
        )
        before = await store.readers.inbox.last_turn(PLACE)
        progress = TerminalProgress(store.readers, commits)
        adapter = TerminalAdapter(chat.screen, progress, clock, toolsets=chat.toolsets)
        runtime = _terminal_runtime(
            chat, loaded.config, store, models, host, adapter, MediaFolder(home)
        )
        received = stack.enter_context(ending_on_signal(runtime))
        if chat.interactive:
            # Only now: loading the SDK would hold up the first prompt. One question that needs
            # no server, a command, ends without it.
            host.connect()
            await stack.enter_async_context(recurring(server_jobs(host), clock))
            await stack.enter_async_context(
                keeping_current(home, live, host, clock, enabled=loaded.config.mcp.watch)
            )
        await runtime.run()
        last = await store.readers.inbox.last_turn(PLACE)
    if adapter.lost is not None:
        raise OutputLost(adapter.lost) from adapter.lost
    if signal.SIGINT in received:
        raise Interrupted
    return last == before or last is None or last[1] is not TurnEnd.FAILED


class OutputLost(GatewayError):
    """Nobody reads what the chat prints, or it cannot be written."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"the output cannot be written: {cause.strerror}")

    @property
    def public_message(self) -> str:
        """Return the reason, and where the rest is."""
        return f"{self}; what was not shown comes at the next start"


class Interrupted(GatewayError):
    """A person ended the process from the keyboard; it drained as for any other end."""

    @property
    def public_message(self) -> str:
        """Return what happened."""
        return "Interrupted."


def _terminal_runtime(
    chat: TerminalChat,
    config: "Config",
    store: "OpenStore",
    models: Models,
    host: "McpHost",
    adapter: "TerminalAdapter",
    media: Media,
) -> "Runtime":
    from adapters.terminal.ids import PERSON, PLACE
    from adapters.terminal.markup import TerminalRenderer
    from gateway.runtime.access import Access
    from gateway.runtime.clock import SystemClock
    from gateway.runtime.runtime import Edges, Runtime, RuntimeConfig

    renderer = TerminalRenderer(interactive=chat.interactive)
    wait = config.mcp.first_turn_wait if chat.interactive else ONE_QUESTION_WAIT
    return Runtime(
        store=store.store,
        readers=store.readers,
        edges=Edges(
            provider=models.default,
            find_model=models.find,
            overrides=models.overrides,
            host=host,
            signing=host,
            adapters=(adapter,),
            renderers={PLACE.platform: renderer},
            media=media,
        ),
        access=Access(config.access, extra_admins=frozenset({str(PERSON)}), allowed={}),
        clock=SystemClock(),
        config=RuntimeConfig(
            gateway=config.gateway,
            approvals=config.approvals,
            tool_search=config.tools.tool_search,
            first_turn_wait=wait,
        ),
    )


class CommitBell:
    """Rings after each group commit; a ring between two waits is not lost."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self) -> None:
        await self._rung.wait()
        self._rung.clear()


class TerminalProgress:
    """Implements the terminal's `Progress` on the store."""

    def __init__(self, readers: Readers, commits: CommitBell) -> None:
        self._readers = readers
        self._commits = commits

    async def activity(self) -> Activity:
        """Say whether the terminal's conversation works, waits for an answer, or is done."""
        from adapters.terminal.ids import PLACE

        return await self._readers.inbox.activity(PLACE)

    async def changed(self) -> None:
        """Return after the next commit."""
        await self._commits.wait()

    async def open_cards(self) -> Sequence[Delivery]:
        """Return the cards of an earlier run that still wait."""
        from adapters.terminal.ids import PLACE

        return await self._readers.deliveries.cards(PLACE)
