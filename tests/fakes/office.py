"""A running gateway in the process: a whole runtime, its control socket, and a client of that."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.terminal.attached import AttachedTerminals
from adapters.terminal.ids import PLATFORM as TERMINAL
from adapters.terminal.markup import TerminalRenderer
from gateway.control.app import control_app
from gateway.control.client import SocketClient
from gateway.control.desk import About, Desk, Given
from gateway.control.operators import operators
from gateway.control.server import serving
from gateway.domain.health import Health, HealthState
from gateway.domain.ids import ChatType, Place
from gateway.ports import ModelProvider, Readers, Store, StoreHealth
from gateway.runtime.access import Access
from gateway.runtime.asking import Asking
from gateway.runtime.clock import SystemClock
from gateway.runtime.commits import Commits
from gateway.runtime.config import AccessConfig, ApprovalsConfig
from gateway.runtime.form_answers import FormAnswers
from gateway.runtime.form_steps import FormSteps
from gateway.runtime.heartbeat import Heartbeat
from gateway.runtime.permissions import Permissions
from gateway.runtime.runtime import Edges, Runtime, RuntimeConfig
from gateway.runtime.sending import Sending
from gateway.runtime.status import StatusBoard
from mcp_host.bridge.config import BridgeConfig
from store import open_store
from tests.fakes.agent_log import ListedLog
from tests.fakes.house import folder_in
from tests.fakes.loopback import ANNA, BEN, PLATFORM, Loopback, LoopbackRenderer, message
from tests.fakes.model import ScriptedModel
from tests.fakes.tools import FakeTools
from tests.support.clock import NOON

LOCAL = "terminal:local"
PLACE = Place(platform=TERMINAL, chat="local", chat_type=ChatType.DM)
CONNECTED = Health(state=HealthState.CONNECTED, since=NOON)


@dataclass(slots=True, kw_only=True)
class Office:
    """What a test sees of it; `health` and `store_health` are what they say they are."""

    path: Path
    client: SocketClient
    desk: Desk
    runtime: Runtime
    store: Store
    readers: Readers
    tools: FakeTools
    chat: Loopback
    health: dict[tuple[str, str], Health]
    store_health: list[StoreHealth]
    stopped: list[bool] = field(default_factory=list[bool])
    _numbers: int = 0

    async def say(self, text: str, *, place: Place | None = None) -> None:
        """Let Anna say something in the chat beside the terminal."""
        self._numbers += 1
        await self.runtime.intake.emit(message(text, n=self._numbers, place=place))

    async def lines(
        self, text: str, *, event_id: str = "", interactive: bool = True, name: str = LOCAL
    ) -> list[dict[str, Any]]:
        """Give a line to an attached chat; return what it was told, up to its end."""
        self._numbers += 1
        given = self.client.give(
            name, text, event_id=event_id or f"e{self._numbers}", interactive=interactive
        )
        async with asyncio.timeout(10), given as lines:
            return [dict(line) async for line in lines]


@asynccontextmanager
async def open_office(
    home: Path,
    model: ModelProvider | None = None,
    *,
    tools: FakeTools | None = None,
    approvals: ApprovalsConfig | None = None,
    bridge: BridgeConfig | None = None,
    at_work: bool = True,
) -> AsyncGenerator[Office]:
    """Run a gateway with a loopback chat until the block ends; it answers nobody unless `at_work`."""
    clock, commits, heartbeat = SystemClock(), Commits(), Heartbeat(SystemClock())
    chat, host, terminals = Loopback(), tools or FakeTools(), AttachedTerminals()
    health = {(PLATFORM, ""): CONNECTED}
    store_health = [StoreHealth()]
    stopped: list[bool] = []
    media = folder_in(home)
    config, agents = approvals or ApprovalsConfig(), bridge or BridgeConfig()
    opened = open_store(home / "state.db", clock=clock, on_commit=commits.ring)
    async with opened as store, asyncio.TaskGroup() as tasks:
        runtime = Runtime(
            store=store.store,
            readers=store.readers,
            edges=Edges(
                provider=model or ScriptedModel(),
                host=host,
                adapters=[terminals, chat],
                renderers={PLATFORM: LoopbackRenderer(), TERMINAL: TerminalRenderer()},
                fetching={(PLATFORM, ""): chat},
                media=media,
            ),
            access=Access(
                AccessConfig(),
                operators=operators(os.getuid()),
                allowed={PLATFORM: frozenset({ANNA.id, BEN.id})},
            ),
            clock=clock,
            config=RuntimeConfig(approvals=config),
            log=ListedLog(),
        )
        board = StatusBoard(
            platforms={(PLATFORM, ""): lambda: health[(PLATFORM, "")]},
            host=host,
            store=lambda: store_health[0],
            heartbeat=heartbeat,
        )
        readers = store.readers
        steps = FormSteps(store.store, runtime.renderers, runtime.wakeups, clock, config)
        desk = Desk(
            about=About(
                version="1.2.3",
                home=str(home),
                pid=os.getpid(),
                uid=os.getuid(),
                user="root",
                started_at=clock.now(),
                store_url="sqlite:///x",
                schema=1,
            ),
            board=board,
            readers=readers,
            store=store.store,
            host=host,
            intake=runtime.intake,
            terminals=terminals,
            sending=Sending(
                store=store.store,
                channels=readers.channels,
                deliveries=readers.deliveries,
                renderers=runtime.renderers,
                health=lambda name, account: (
                    CONNECTED if name == TERMINAL else board.health(name, account)
                ),
                bridge_may=agents.allows,
                media=media,
                wakeups=runtime.wakeups,
                commits=commits,
                clock=clock,
            ),
            decisions=runtime.decisions,
            answers=FormAnswers(readers.questions, runtime.decisions, steps, clock),
            pairing=runtime.pairing,
            permissions=Permissions(
                Asking(
                    store.store,
                    readers.questions,
                    runtime.renderers,
                    runtime.decisions,
                    runtime.wakeups,
                    clock,
                    config,
                ),
                readers.conversations,
                readers.channels,
                runtime.renderers,
                config,
            ),
            commits=commits,
            given=Given(commits),
            clock=clock,
            redact=config.redact,
            bridge_decides=agents.allow_approvals,
            stop=stopped.append,
            leaving=lambda: runtime.leaving,
        )
        working = tasks.create_task(runtime.run() if at_work else _nothing(), name="runtime")
        if at_work:
            await runtime.ready.wait()
        path = home / "gateway.sock"
        async with serving(control_app(desk), path, before_end=desk.ending.set):
            yield Office(
                path=path,
                client=SocketClient(path),
                desk=desk,
                runtime=runtime,
                store=store.store,
                readers=readers,
                tools=host,
                chat=chat,
                health=health,
                store_health=store_health,
                stopped=stopped,
            )
            runtime.stop()
            await asyncio.wait({working})


async def _nothing() -> None:
    return


def kinds(lines: list[dict[str, Any]]) -> list[str]:
    """What kinds of lines came, pings left out."""
    return [line["type"] for line in lines if line["type"] != "ping"]


def of_kind(lines: list[dict[str, Any]], kind: str) -> Mapping[str, Any]:
    """Return the first line of a kind."""
    return next(line for line in lines if line["type"] == kind)
