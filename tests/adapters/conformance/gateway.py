"""A gateway in this process with a real store and the adapters the product opens, over fakes."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from gateway.app.platforms import open_platforms
from gateway.config.home import Home
from gateway.config.media import MediaFolder
from gateway.config.schema import Config
from gateway.domain.question import Approvers
from gateway.ports import ModelProvider, ToolHost
from gateway.runtime.access import Access
from gateway.runtime.clock import SystemClock
from gateway.runtime.commits import Commits
from gateway.runtime.config import AccessConfig, ApprovalsConfig, RateConfig, Route
from gateway.runtime.runtime import Edges, Runtime, RuntimeConfig
from gateway.runtime.sending import Sending
from gateway.telemetry.redact import Redactor
from store import open_store
from tests.adapters.conformance.platform import Chat, Person, Scene
from tests.fakes.agent_log import ListedLog
from tests.fakes.model import ScriptedModel, calls, says
from tests.fakes.tools import FakeTools, tool

UNHURRIED: Final = RateConfig(user_per_minute=0, chat_per_minute=0)
"""Nobody writes as fast as a test."""
REQUESTER: Final = Approvers()
ADD: Final = tool("add_note")


def gated() -> FakeTools:
    """Return a server whose one tool asks before it runs."""
    tools = FakeTools()
    tools.add(ADD, gated=True)
    return tools


def noting(text: str = "milk", *, then: str = "Noted.") -> ScriptedModel:
    """Return a model that calls that tool and then says so."""
    return ScriptedModel([calls((ADD.alias, {"text": text})), says(then)])


@asynccontextmanager
async def living(
    home: Path,
    platforms: Mapping[str, object],
    model: ModelProvider,
    tools: ToolHost | None = None,
    *,
    paced: bool = False,
    crash: bool = False,
    **sections: Any,
) -> AsyncGenerator[Sending]:
    """Run a gateway with these sections until the block ends; twice on a home is a restart.

    The end is a clean one, or with `crash` as abrupt as a process can be ended from inside. Not
    `paced` sends as fast as it can. The value is what sends on request, as the shell asks it to.
    """
    sections.setdefault("access", AccessConfig(rate=UNHURRIED))
    config = Config(workspace=home, platforms=platforms, **sections)
    clock, commits, where = SystemClock(), Commits(), Home(home)
    where.create()
    media = MediaFolder(where)
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(
            open_store(where.state_db, clock=clock, on_commit=commits.ring)
        )
        found = await open_platforms(
            config,
            environ={"XDG_RUNTIME_DIR": str(_private(home / "run"))},
            redactor=Redactor(),
            store=opened,
            media=media,
            clock=clock,
            stack=stack,
        )
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        runtime = Runtime(
            store=opened.store,
            readers=opened.readers,
            edges=Edges(
                provider=model,
                host=tools or FakeTools(),
                adapters=found.adapters,
                renderers=found.renderers,
                budgets=found.budgets if paced else {},
                answering=found.answering,
                fetching=found.fetching,
                media=media,
                typing=found.typing,
                streaming=found.streaming,
                reacting=found.reacting,
            ),
            access=Access(config.access, doors=found.doors),
            clock=clock,
            config=RuntimeConfig(
                gateway=config.gateway, approvals=config.approvals, rate=config.access.rate
            ),
            log=ListedLog(),
        )
        running = tasks.create_task(runtime.run(), name="runtime")
        try:
            yield Sending(
                store=opened.store,
                channels=opened.readers.channels,
                deliveries=opened.readers.deliveries,
                renderers=runtime.renderers,
                health=lambda name, account: found.health[name, account](),
                bridge_may=lambda channel: True,
                media=media,
                wakeups=runtime.wakeups,
                commits=commits,
                clock=clock,
            )
        finally:
            if crash:
                runtime.broker.stop()
                running.cancel()
            else:
                runtime.stop()


@asynccontextmanager
async def hosting(
    home: Path,
    scene: Scene,
    model: ModelProvider,
    tools: ToolHost | None = None,
    *,
    people: Iterable[Person] = (),
    groups: Iterable[Chat] = (),
    admins: Iterable[Person] = (),
    expiry: float = 300,
    approvers: Approvers = REQUESTER,
    route: Route = Route.HERE,
    mention: bool = False,
    crash: bool = False,
    **account: object,
) -> AsyncGenerator[Sending]:
    """Do so on the platform of a scene, for these people and groups.

    `mention`: in a group it must be called by name. `account` are further keys of the section.
    """
    name = scene.platform.name
    section = {
        **scene.section,
        "allow_from": [person.id for person in people],
        "groups": [chat.id for chat in groups],
        "require_mention": mention,
        "dm_policy": "ignore",
        **account,
    }
    access = AccessConfig(
        admins=frozenset(f"{name}:{person.id}" for person in admins), rate=UNHURRIED
    )
    async with living(
        home,
        {name: section},
        model,
        tools,
        crash=crash,
        access=access,
        approvals=ApprovalsConfig(timeout=expiry, approvers=approvers, route=route),
    ) as sending:
        yield sending


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
