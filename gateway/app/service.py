"""`hermes gateway run`: the service, put together and run until it is told to end."""

import asyncio
import importlib
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.app.cadence import Job, recurring, server_jobs
from gateway.app.live import LiveServers, keeping_current
from gateway.app.parts import (
    Models,
    end_at_once,
    ending_on_signal,
    open_host,
    open_models,
    program_version,
)
from gateway.app.platforms import Platforms, open_platforms, with_profile
from gateway.domain.conversation import Channel
from gateway.domain.health import Health, HealthState
from gateway.domain.ids import Actor
from gateway.domain.operations.upkeep import SetHome
from gateway.ports import Clock, Media

if TYPE_CHECKING:
    from adapters.terminal.attached import AttachedTerminals
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from gateway.control.desk import Desk
    from gateway.runtime.alarms import Alarms
    from gateway.runtime.commits import Commits
    from gateway.runtime.heartbeat import Heartbeat
    from gateway.runtime.retention import Retention
    from gateway.runtime.runtime import Runtime
    from gateway.telemetry.redact import Redactor
    from mcp_host.host import McpHost
    from store.open import OpenStore

logger = logging.getLogger(__name__)

SERVERS_SECONDS: Final = 60.0
"""How long a start waits before it says how its servers did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the running gateway consists of."""

    home: "Home"
    loaded: "Loaded"
    clock: Clock
    commits: "Commits"
    store: "OpenStore"
    models: Models
    host: "McpHost"
    media: Media
    platforms: Platforms
    terminals: "AttachedTerminals"


async def run_gateway(
    home: "Home",
    loaded: "Loaded",
    *,
    environ: Mapping[str, str],
    redactor: "Redactor",
    ready: Callable[[], None],
) -> None:
    """Serve until a signal or the control socket ends it; the caller holds the home.

    `ready` is called once messages are taken and the control socket answers.

    Raises:
        HomeError: The control socket cannot be made.
        GatewayError: The store or the model cannot be opened.
    """
    from adapters.terminal.attached import AttachedTerminals
    from gateway.config.media import MediaFolder
    from gateway.control.paths import socket_path
    from gateway.runtime.clock import SystemClock
    from gateway.runtime.commits import Commits
    from gateway.runtime.heartbeat import Heartbeat
    from store import open_store

    clock, commits = SystemClock(), Commits()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(
            open_store(home.state_db, clock=clock, on_commit=commits.ring)
        )
        profile = with_profile(home, environ)
        models = await stack.enter_async_context(open_models(loaded.config, profile))
        live = LiveServers(home, loaded, environ, redactor)
        host = await stack.enter_async_context(
            open_host(
                home, loaded.config, clock, live.load, on_demand=True, provider=models.default
            )
        )
        media = MediaFolder(home)
        parts = _Parts(
            home=home,
            loaded=loaded,
            clock=clock,
            commits=commits,
            store=store,
            models=models,
            host=host,
            media=media,
            platforms=await open_platforms(
                loaded.config,
                environ=profile,
                redactor=redactor,
                store=store,
                media=media,
                clock=clock,
                stack=stack,
            ),
            terminals=AttachedTerminals(),
        )
        await _set_homes(parts)
        runtime = _runtime(parts)
        stack.enter_context(ending_on_signal(runtime, hard=True))
        heartbeat = Heartbeat(clock)
        desk = _desk(parts, runtime, heartbeat)
        path = socket_path(home.path, environ=environ)
        await stack.enter_async_context(
            keeping_current(home, live, host, clock, enabled=loaded.config.mcp.watch)
        )
        _load_the_rest()
        host.connect()
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(_tell_of_servers(host), name="servers")
            working = tasks.create_task(runtime.run(), name="runtime")
            await runtime.ready.wait()
            jobs = _jobs(heartbeat, _alarms(parts, runtime, desk), _retention(parts), host)
            async with recurring(jobs, clock):
                await _serve(desk, path, working, ready)
            telling.cancel()


def _jobs(
    heartbeat: "Heartbeat", alarms: "Alarms", retention: "Retention", host: "McpHost"
) -> tuple[Job, ...]:
    from gateway.runtime import retention as keeping
    from gateway.runtime.alarms import LOOK_SECONDS
    from gateway.runtime.heartbeat import BEAT_SECONDS

    return (
        Job(name="heartbeat", seconds=BEAT_SECONDS, run=heartbeat.beat),
        Job(name="alarms", seconds=LOOK_SECONDS, run=alarms.check),
        Job(name="retention", seconds=keeping.LOOK_SECONDS, run=retention.look, at_most=600.0),
        *server_jobs(host),
    )


async def _tell_of_servers(host: "McpHost") -> None:
    from gateway.runtime.server_replies import started

    await host.wait_started(SERVERS_SECONDS)
    logger.info("%s", started(host.servers()))


def _load_the_rest() -> None:
    """Load what this thread needs before the SDK is loaded in another.

    Two threads that load the same packages at once may each find one half loaded.
    """
    for module in ("gateway.control.app", "gateway.control.server"):
        importlib.import_module(module)


async def _set_homes(parts: _Parts) -> None:
    for place in parts.platforms.homes:
        account = f"@{place.account}" if place.account else ""
        known = await parts.store.readers.channels.resolve(
            f"{place.platform}{account}:{place.chat}"
        )
        if isinstance(known, Channel):
            # What the chat really is was seen; from its id it is only guessed.
            place = known.place
        by = Actor(platform="config", id=place.platform)
        # What somebody chose with /sethome stays.
        await parts.store.store.set_home(SetHome(place=place, by=by, default=True))


async def _serve(
    desk: "Desk", path: "os.PathLike[str]", working: asyncio.Task[None], ready: Callable[[], None]
) -> None:
    from pathlib import Path

    from gateway.control.app import control_app
    from gateway.control.server import serving

    async with serving(control_app(desk), Path(path), before_end=desk.ending.set):
        logger.info("ready: %s", path)
        ready()
        await asyncio.wait({working})


def _runtime(parts: _Parts) -> "Runtime":
    from adapters.terminal.ids import PERSON, PLATFORM
    from adapters.terminal.markup import TerminalRenderer
    from gateway.control.operators import operators
    from gateway.runtime.access import Access
    from gateway.runtime.runtime import Edges, Runtime, RuntimeConfig

    config, platforms = parts.loaded.config, parts.platforms
    return Runtime(
        store=parts.store.store,
        readers=parts.store.readers,
        edges=Edges(
            provider=parts.models.default,
            find_model=parts.models.find,
            overrides=parts.models.overrides,
            host=parts.host,
            signing=parts.host,
            adapters=(parts.terminals, *platforms.adapters),
            renderers={PLATFORM: TerminalRenderer(), **platforms.renderers},
            budgets=platforms.budgets,
            answering=platforms.answering,
            fetching=platforms.fetching,
            media=parts.media,
            typing=platforms.typing,
            streaming=platforms.streaming,
            reacting=platforms.reacting,
            answerable=lambda place: (
                place.platform != PLATFORM or parts.terminals.can_answer(place.chat)
            ),
        ),
        access=Access(
            config.access,
            extra_admins=frozenset({str(PERSON)}),
            operators=operators(os.getuid()),
            doors=platforms.doors,
        ),
        clock=parts.clock,
        config=RuntimeConfig(
            gateway=config.gateway,
            approvals=config.approvals,
            tool_search=config.tools.tool_search,
            rate=config.access.rate,
            first_turn_wait=config.mcp.first_turn_wait,
        ),
    )


def _alarms(parts: _Parts, runtime: "Runtime", desk: "Desk") -> "Alarms":
    from gateway.runtime.alarms import Alarms

    return Alarms(
        board=desk.board,
        channels=parts.store.readers.channels,
        store=parts.store.store,
        renderers=runtime.renderers,
        wakeups=runtime.wakeups,
        clock=parts.clock,
    )


def _retention(parts: _Parts) -> "Retention":
    from gateway.runtime.retention import Retention

    return Retention(
        store=parts.store.store,
        files=parts.store.readers.files,
        media=parts.media,
        clock=parts.clock,
        days=parts.loaded.config.store.retention_days,
    )


def _desk(parts: _Parts, runtime: "Runtime", heartbeat: "Heartbeat") -> "Desk":
    from adapters.terminal.ids import PLATFORM
    from gateway.control.desk import About, Desk, Given
    from gateway.control.operators import user_name
    from gateway.runtime.asking import Asking
    from gateway.runtime.form_answers import FormAnswers
    from gateway.runtime.form_steps import FormSteps
    from gateway.runtime.permissions import Permissions
    from gateway.runtime.sending import Sending
    from gateway.runtime.status import StatusBoard
    from store.engine import SCHEMA_VERSION

    config, clock, store, readers = (
        parts.loaded.config,
        parts.clock,
        parts.store.store,
        parts.store.readers,
    )
    board = StatusBoard(
        platforms=parts.platforms.health,
        host=parts.host,
        store=parts.store.health,
        heartbeat=heartbeat,
    )
    attached = Health(state=HealthState.CONNECTED, since=clock.now())

    def health(platform: str, account: str) -> Health | None:
        return attached if platform == PLATFORM else board.health(platform, account)

    steps = FormSteps(store, runtime.renderers, runtime.wakeups, clock, config.approvals)
    database = parts.home.state_db.name
    return Desk(
        about=About(
            version=program_version(),
            home=str(parts.home.path),
            pid=os.getpid(),
            uid=os.getuid(),
            user=user_name(),
            started_at=clock.now(),
            store_url=f"sqlite:///{parts.home.path}/{database}",
            schema=SCHEMA_VERSION,
        ),
        board=board,
        readers=readers,
        store=store,
        host=parts.host,
        intake=runtime.intake,
        terminals=parts.terminals,
        sending=Sending(
            store=store,
            channels=readers.channels,
            deliveries=readers.deliveries,
            renderers=runtime.renderers,
            health=health,
            bridge_may=config.mcp_serve.allows,
            media=parts.media,
            wakeups=runtime.wakeups,
            commits=parts.commits,
            clock=clock,
        ),
        decisions=runtime.decisions,
        answers=FormAnswers(readers.questions, runtime.decisions, steps, clock),
        pairing=runtime.pairing,
        permissions=Permissions(
            Asking(
                store,
                readers.questions,
                runtime.renderers,
                runtime.decisions,
                runtime.wakeups,
                clock,
                config.approvals,
            ),
            readers.conversations,
            readers.channels,
            runtime.renderers,
            config.approvals,
        ),
        commits=parts.commits,
        given=Given(parts.commits),
        clock=clock,
        redact=config.approvals.redact,
        bridge_decides=config.mcp_serve.allow_approvals,
        stop=lambda now: end_at_once() if now else runtime.stop(),
        leaving=lambda: runtime.leaving,
    )
