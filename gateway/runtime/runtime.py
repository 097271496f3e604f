"""The core of one process, put together from its ports, with one life: recover, work, drain, end."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.domain.ids import Account, Place
from gateway.ports import (
    Adapter,
    Clock,
    FileFetching,
    Media,
    ModelProvider,
    PressAnswering,
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
from gateway.runtime.approval_replies import ApprovalReplies
from gateway.runtime.approvals import ApprovalBroker
from gateway.runtime.assignments import Assignments
from gateway.runtime.backlog import Backlog
from gateway.runtime.busy import Busy
from gateway.runtime.chat_logins import ChatLogins
from gateway.runtime.command_replies import CommandReplies, GeneralReplies
from gateway.runtime.config import ApprovalsConfig, GatewayConfig, RateConfig, ToolSearchConfig
from gateway.runtime.control import ControlWorker
from gateway.runtime.delivery import Budget, DeliveryLoop
from gateway.runtime.downloads import Downloads
from gateway.runtime.entrance import Entrance
from gateway.runtime.expiry import Expiry
from gateway.runtime.file_view import FileViews
from gateway.runtime.homes import Homes
from gateway.runtime.intake import Intake
from gateway.runtime.model_choice import FindModel, ModelChoice
from gateway.runtime.model_replies import ModelReplies
from gateway.runtime.narration import AgentLog
from gateway.runtime.no_media import NoMedia
from gateway.runtime.overrides import Overrides
from gateway.runtime.pairing import PairingDesk
from gateway.runtime.persist import persist
from gateway.runtime.presses import Presses
from gateway.runtime.routing import Routing
from gateway.runtime.session_replies import SessionReplies
from gateway.runtime.streaming import Streams
from gateway.runtime.supervision import keep_running
from gateway.runtime.tool_replies import ToolReplies
from gateway.runtime.turns import TurnConfig, Turns
from gateway.runtime.typing_indicator import TypingIndicator
from gateway.runtime.wakeups import Wakeups
from gateway.runtime.workers import Workers
from gateway.telemetry import agent_log

logger = logging.getLogger(__name__)

DRAIN_SECONDS: Final = 10.0
"""From the request to end until the runtime is gone; what is not finished then is parked."""

ORPHANED: Final = "the gateway was restarted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeConfig:
    """The sections the runtime reads; `first_turn_wait` seconds the servers get before a turn."""

    gateway: GatewayConfig = field(default_factory=GatewayConfig)
    approvals: ApprovalsConfig = field(default_factory=ApprovalsConfig)
    tool_search: ToolSearchConfig = field(default_factory=ToolSearchConfig)
    rate: RateConfig = field(default_factory=RateConfig)
    first_turn_wait: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """What the runtime talks to. `provider` answers where neither `overrides` nor a choice says else.

    `fetching` are adapters that hand over the files of messages, `media` is where files are kept.
    `answering` are adapters that answer a press themselves, `typing` those that show that an
    answer is being worked on, `streaming` those that show a reply while it is made, `reacting`
    those that can mark a message; `signing` signs people in to servers. `answerable` says whether
    somebody can answer a card in a place now.
    """

    provider: ModelProvider
    host: ToolHost
    adapters: Sequence[Adapter]
    renderers: Mapping[str, Renderer]
    budgets: Mapping[Account, Budget] = field(default_factory=dict[Account, Budget])
    answering: Mapping[Account, PressAnswering] = field(
        default_factory=dict[Account, PressAnswering]
    )
    fetching: Mapping[Account, FileFetching] = field(default_factory=dict[Account, FileFetching])
    media: Media = field(default_factory=NoMedia)
    typing: Mapping[Account, Typing] = field(default_factory=dict[Account, Typing])
    streaming: Mapping[Account, Streaming] = field(default_factory=dict[Account, Streaming])
    reacting: Mapping[Account, Reacting] = field(default_factory=dict[Account, Reacting])
    signing: SigningIn | None = None
    find_model: FindModel | None = None
    overrides: Overrides = field(default_factory=Overrides)
    answerable: Callable[[Place], bool] = lambda place: True


class Runtime:
    """Intake, turns, questions and deliveries of one home.

    `intake` is where other ways in (control socket, dashboard) put what people say; `decisions`
    is where they decide, `pairing` where strangers are let in. `ready` is set once intake works.
    """

    def __init__(
        self,
        *,
        store: Store,
        readers: Readers,
        edges: Edges,
        access: Access,
        clock: Clock,
        config: RuntimeConfig,
        worker: str = "gateway",
        log: AgentLog = agent_log,
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._adapters = edges.adapters
        self.renderers = edges.renderers
        self.wakeups = Wakeups()
        self.ready = asyncio.Event()
        self._leaving = asyncio.Event()
        backlog = Backlog(self.wakeups, clock)
        questions, renderers = readers.questions, edges.renderers
        self._downloads = Downloads(
            store=store,
            files=readers.files,
            media=edges.media,
            fetching=edges.fetching,
            renderers=renderers,
            wakeups=self.wakeups,
            clock=clock,
        )
        self.broker = ApprovalBroker(
            store,
            questions,
            readers.rules,
            renderers,
            access,
            self.wakeups,
            clock,
            config.approvals,
            Routing(
                readers.channels, renderers, access, config.approvals, answerable=edges.answerable
            ),
        )
        self.decisions = self.broker.decisions
        choice = ModelChoice(
            default=edges.provider, find=edges.find_model, overrides=edges.overrides
        )
        self.workers = Workers(
            store=store,
            turns=Turns(
                store=store,
                conversations=readers.conversations,
                assignments=Assignments(
                    inbox=readers.inbox, access=access, choice=choice, clock=clock
                ),
                choice=choice,
                host=edges.host,
                broker=self.broker,
                access=access,
                renderers=renderers,
                wakeups=self.wakeups,
                clock=clock,
                log=log,
                config=TurnConfig(
                    gateway=config.gateway,
                    tool_search=config.tool_search,
                    first_wait=config.first_turn_wait,
                ),
                files=FileViews(files=readers.files, media=edges.media, awaited=self._downloads),
            ),
            busy=Busy(
                store=store,
                access=access,
                renderers=renderers,
                wakeups=self.wakeups,
                mode=config.gateway.busy_mode,
                reacting=edges.reacting,
            ),
            wakeups=self.wakeups,
            backlog=backlog,
            typing=TypingIndicator(edges.typing, clock),
            streams=Streams(
                edges.streaming,
                store=store,
                deliveries=readers.deliveries,
                wakeups=self.wakeups,
                clock=clock,
            ),
            clock=clock,
            worker=worker,
        )
        self._logins = ChatLogins(edges.signing, store, renderers, self.wakeups, clock)
        self._control = ControlWorker(
            store,
            readers.inbox,
            renderers,
            Presses(
                store,
                questions,
                renderers,
                self.decisions,
                self.wakeups,
                clock,
                config.approvals,
            ),
            CommandReplies(
                access,
                GeneralReplies(readers, edges.host, access, self.workers.stop).replies,
                ToolReplies(edges.host, access, clock).replies,
                SessionReplies(readers.conversations, store).replies,
                ModelReplies(readers.conversations, store, access, choice).replies,
                ApprovalReplies(questions, self.decisions, clock).replies,
                self._logins.replies,
                Homes(store).replies,
            ),
            self.wakeups,
            clock,
            answering=edges.answering,
        )
        self._expiry = Expiry(questions, self.decisions, clock)
        self.pairing = PairingDesk(store, readers.pairings, renderers, access, self.wakeups, clock)
        self.entrance = Entrance(
            access=access,
            pairing=self.pairing,
            store=store,
            readers=readers,
            renderers=renderers,
            backlog=backlog,
            wakeups=self.wakeups,
            clock=clock,
            rate=config.rate,
        )
        self.intake = Intake(
            store, access, self.entrance, self.wakeups, self.workers, backlog, self._logins
        )
        self._loops = [
            DeliveryLoop(
                adapter=adapter,
                store=store,
                deliveries=readers.deliveries,
                wakeups=self.wakeups,
                clock=clock,
                worker=worker,
                budget=edges.budgets.get((adapter.platform, adapter.account)),
            )
            for adapter in edges.adapters
        ]

    @property
    def leaving(self) -> bool:
        """Whether it was asked to end."""
        return self._leaving.is_set()

    def stop(self) -> None:
        """Ask `run` to drain and return."""
        self._leaving.set()

    async def run(self) -> None:
        """Recover, then work until `stop`, or until every adapter's platform has ended.

        Cancelled, it ends at once: what was under way is taken up at the next start.
        """
        await self._recover()
        for learn in (self.pairing.load, self.entrance.load):
            await persist(learn, clock=self._clock)
        async with asyncio.TaskGroup() as tasks:
            adapters = [
                tasks.create_task(
                    keep_running(adapter, self.intake, clock=self._clock),
                    name=f"adapter:{adapter.platform}",
                )
                for adapter in self._adapters
            ]
            workers = tasks.create_task(self.workers.run(), name="workers")
            loops = [tasks.create_task(loop.run(), name="outbox") for loop in self._loops]
            beside = [
                tasks.create_task(self._control.run(), name="control"),
                tasks.create_task(self._expiry.run(), name="expiry"),
                tasks.create_task(self._downloads.run(), name="files"),
                tasks.create_task(self._logins.run(), name="logins"),
                tasks.create_task(self._stop_with(adapters), name="adapters:end"),
            ]
            self.ready.set()
            await self._leaving.wait()
            await self._drain(workers, loops)
            for task in (*adapters, workers, *loops, *beside):
                task.cancel()

    async def _recover(self) -> None:
        found = await persist(lambda: self._store.recover(worker=self._worker), clock=self._clock)
        if found.turns or found.deliveries or found.questions:
            logger.info(
                "an earlier run left %d open turns, %d sends of unknown outcome, %d questions",
                found.turns,
                len(found.deliveries),
                len(found.questions),
            )
        await persist(
            lambda: self.broker.withdraw(found.questions, reason=ORPHANED), clock=self._clock
        )

    async def _stop_with(self, adapters: Sequence[asyncio.Task[None]]) -> None:
        if not adapters:
            return
        await asyncio.wait(adapters)
        self.stop()

    async def _drain(
        self, workers: asyncio.Task[None], loops: Sequence[asyncio.Task[None]]
    ) -> None:
        """Take nothing more, let turns end or park, then send what is due."""
        self.intake.close()
        self.broker.stop()
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                self.workers.shut_down()
                await asyncio.wait({workers})
                for loop in self._loops:
                    loop.shut_down()
                if loops:
                    await asyncio.wait(loops)
        except TimeoutError:
            logger.warning("not everything ended in %g s; the rest waits", DRAIN_SECONDS)
