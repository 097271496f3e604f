"""Opens claimed turns with what they need, and stores how they end. Runs none of them itself."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway.domain.delivery import Part
from gateway.domain.operations.turns import Claim, Committed, CommitTurn, Release
from gateway.ports import Clock, Conversations, Renderer, ToolHost, TurnStore
from gateway.runtime.access import Access
from gateway.runtime.approvals import ApprovalBroker
from gateway.runtime.assignments import Assignments, toolsets_of
from gateway.runtime.calls import StepWork
from gateway.runtime.config import GatewayConfig, ToolSearchConfig
from gateway.runtime.context import Context
from gateway.runtime.file_view import FileViews
from gateway.runtime.journal import Journal
from gateway.runtime.model_call import ModelCaller
from gateway.runtime.model_choice import ModelChoice
from gateway.runtime.narration import AgentLog
from gateway.runtime.outgoing import parts_of
from gateway.runtime.permitted import Permitted
from gateway.runtime.persist import persist
from gateway.runtime.streaming import Growing
from gateway.runtime.toolbox import Toolbox
from gateway.runtime.toolsets import EVERYTHING, narrowed
from gateway.runtime.turn import Ending, Turn
from gateway.runtime.wakeups import Wakeups
from gateway.telemetry.faults import FaultPoint, reach

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnConfig:
    """How turns run; `first_wait` seconds the first turn gives the servers to be listed."""

    gateway: GatewayConfig
    tool_search: ToolSearchConfig
    first_wait: float = 5.0


class Turns:
    """Everything a turn needs, held once for all of them."""

    def __init__(
        self,
        *,
        store: TurnStore,
        conversations: Conversations,
        assignments: Assignments,
        choice: ModelChoice,
        host: ToolHost,
        broker: ApprovalBroker,
        access: Access,
        renderers: Mapping[str, Renderer],
        wakeups: Wakeups,
        clock: Clock,
        log: AgentLog,
        config: TurnConfig,
        files: FileViews,
    ) -> None:
        self._store = store
        self._conversations = conversations
        self._assignments = assignments
        self._choice = choice
        self._host = host
        self._broker = broker
        self._access = access
        self._renderers = renderers
        self._wakeups = wakeups
        self._clock = clock
        self._log = log
        self._config = config
        self._files = files
        self._waited_for: set[tuple[str, ...]] = set()

    async def open(
        self, claim: Claim, *, arrivals: asyncio.Event, growing: Growing | None = None
    ) -> Turn:
        """Return the turn of a claim, ready to run; `arrivals` says that something may join it."""
        assignment = await self._assignments.of(claim)
        claim, provider = assignment.claim, assignment.provider
        caller = ModelCaller(clock=self._clock, log=self._log)
        host = Permitted(
            host=narrowed(self._host, assignment.toolsets),
            access=self._access,
            people=assignment.people,
            place=claim.place,
        )
        toolbox = Toolbox(
            host=host,
            config=self._config.tool_search,
            asks_person=provider.asks_person,
            permits=host.permits if host.restricts else None,
        )
        journal = Journal(self._store, claim, clock=self._clock)
        return Turn(
            claim=claim,
            journal=journal,
            context=Context(
                claim=claim,
                conversations=self._conversations,
                store=self._store,
                caller=caller,
                provider=provider,
                toolbox=toolbox,
                clock=self._clock,
                configured_prompt=self._choice.prompt(
                    claim.place, configured=self._config.gateway.system_prompt
                ),
                without=assignment.hides,
                # Guided mode searches by what was said, not by what a file holds.
                files=self._files.open(whole=not provider.asks_person),
            ),
            work=StepWork(
                claim=claim,
                toolbox=toolbox,
                journal=journal,
                broker=self._broker,
                clock=self._clock,
                log=self._log,
                media=self._files.media,
            ),
            caller=caller,
            provider=provider,
            config=self._config.gateway,
            arrivals=arrivals,
            hides=assignment.hides,
            aside=assignment.aside,
            growing=growing,
        )

    async def wait_for_servers(self, claim: Claim) -> None:
        """Give the servers of a turn a bounded time to be listed, before the first turns only."""
        wanted = tuple(toolsets_of(claim))
        if self._waited_for & {wanted, EVERYTHING}:
            return
        await narrowed(self._host, wanted).wait_ready(self._config.first_wait)
        self._waited_for.add(wanted)

    async def store_end(
        self, claim: Claim, ending: Ending, *, not_before: datetime | None = None
    ) -> Committed:
        """Store reply, deliveries and books of a turn together; what waits begins no earlier.

        Raises:
            Fenced: The conversation is no longer ours.
        """
        commit = CommitTurn(
            conversation=claim.conversation,
            turn=claim.turn,
            fence=claim.fence,
            end=ending.end,
            # What is no part of the conversation is sent and not kept.
            reply="" if ending.aside else ending.reply,
            parts=self._rendered(claim, ending),
            replied=ending.replied,
            usage=ending.usage,
            error=ending.error,
            not_before=not_before,
            hides=ending.hides,
        )
        await reach(FaultPoint.REPLY_READY)
        committed = await persist(lambda: self._store.commit_turn(commit), clock=self._clock)
        await reach(FaultPoint.REPLY_COMMITTED)
        self._wakeups.deliveries()
        return committed

    async def give_back(self, claim: Claim) -> None:
        """Release a claim; the turn is taken up again by whoever claims it next."""
        await self._store.release(Release(conversation=claim.conversation, fence=claim.fence))

    def _rendered(self, claim: Claim, ending: Ending) -> tuple[Part, ...]:
        renderer = self._renderers.get(claim.place.platform)
        if renderer is None:
            logger.error("no renderer for %s: the reply is stored, not sent", claim.place.platform)
            return ()
        where = self._files.media.path
        return parts_of(ending.reply, ending.files, renderer=renderer, where=where)
