"""Composition root: the only place that names concrete classes.

Classes are imported inside the functions that use them, so that each command loads only what it
needs. Nothing here decides anything.
"""

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.domain.conversation import Activity
from gateway.domain.delivery import Delivery
from gateway.domain.errors import GatewayError
from gateway.domain.operations.turns import TurnEnd
from gateway.ports import Clock, ModelProvider, Readers

if TYPE_CHECKING:
    from adapters.terminal.adapter import TerminalAdapter
    from adapters.terminal.screen import Screen
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.config.schema import Config
    from gateway.runtime.runtime import Runtime
    from gateway.telemetry.redact import Redactor
    from mcp_host.config import ServerConfig
    from mcp_host.host import LoadServers, McpHost
    from store.open import OpenStore

logger = logging.getLogger(__name__)

ONE_QUESTION_WAIT: Final = 30.0
"""Seconds that `hermes chat -q` gives cold servers before its turn (SPEC §7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalChat:
    """How `hermes chat` runs: on which screen, and whether somebody can answer cards there.

    `redactor` masks the logs; secrets that a reload brings are added to it.
    """

    screen: "Screen"
    redactor: "Redactor"
    interactive: bool = True


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
    from gateway.runtime.clock import SystemClock
    from store import open_store
    from store.lock import hold_home

    clock, commits = SystemClock(), CommitBell()
    async with AsyncExitStack() as stack:
        stack.enter_context(hold_home(home.path))
        store = await stack.enter_async_context(
            open_store(home.state_db, clock=clock, on_commit=commits.ring)
        )
        provider = await stack.enter_async_context(_open_provider(loaded.config, environ))
        reload = _server_loader(home, loaded, environ, chat.redactor)
        host = await stack.enter_async_context(_open_host(home, loaded.config, clock, reload))
        before = await store.readers.inbox.last_turn(PLACE)
        adapter = TerminalAdapter(chat.screen, TerminalProgress(store.readers, commits), clock)
        runtime = _terminal_runtime(chat, loaded.config, store, provider, host, adapter)
        received = stack.enter_context(_ending_on_signal(runtime))
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


def program_version() -> str:
    """Return the installed version."""
    from importlib.metadata import version

    return version("hermes-gateway")


def _terminal_runtime(
    chat: TerminalChat,
    config: "Config",
    store: "OpenStore",
    provider: ModelProvider,
    host: "McpHost",
    adapter: "TerminalAdapter",
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
            provider=provider,
            host=host,
            adapters=(adapter,),
            renderers={PLACE.platform: renderer},
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


@asynccontextmanager
async def _open_provider(
    config: "Config", environ: Mapping[str, str]
) -> AsyncGenerator[ModelProvider]:
    if config.model is None:
        from gateway.providers.guided import Guided

        yield Guided()
        return
    from gateway.providers.config import keys_from
    from gateway.providers.models import open_model

    async with open_model(config.model, keys=keys_from(environ)) as provider:
        yield provider


@asynccontextmanager
async def _open_host(
    home: "Home", config: "Config", clock: Clock, reload: "LoadServers"
) -> AsyncGenerator["McpHost"]:
    from mcp_host.host import open_host

    async with open_host(
        config.mcp_servers,
        mcp=config.mcp,
        clock=clock,
        stderr_log=home.mcp_stderr_log,
        version=program_version(),
        reload=reload,
    ) as host:
        yield host


def _server_loader(
    home: "Home", loaded: "Loaded", environ: Mapping[str, str], redactor: "Redactor"
) -> "LoadServers":
    from gateway.config.load import Reloader

    reloader = Reloader(home, environ=environ, loaded=loaded)

    def load() -> "Mapping[str, ServerConfig]":
        # A broken file keeps the last good entries.
        current = reloader.reload()
        redactor.add(current.secrets)
        for finding in current.findings.items:
            logger.warning("configuration: %s: %s", finding.path, finding.message)
        return current.config.mcp_servers

    return load


@contextmanager
def _ending_on_signal(runtime: "Runtime") -> Generator[list[signal.Signals]]:
    """Drain at the first SIGTERM or SIGINT; the second ends at once, as the signal does.

    Yields the list that gets the first.
    """
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    received: list[signal.Signals] = []

    def end(which: signal.Signals) -> None:
        received.append(which)
        for number in signals:
            loop.remove_signal_handler(number)
        runtime.stop()

    for number in signals:
        loop.add_signal_handler(number, end, number)
    try:
        yield received
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
