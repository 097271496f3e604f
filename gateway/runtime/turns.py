"""Opens claimed turns with what they need, and stores how they end. Runs none of them itself."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gateway.domain.delivery import Part
from gateway.domain.ids import Actor
from gateway.domain.message import CommandGiven, InboundMessage
from gateway.domain.operations.inbound import Lane
from gateway.domain.operations.turns import Claim, Committed, CommitTurn, Release
from gateway.ports import Clock, Conversations, ModelProvider, Renderer, ToolHost, TurnStore
from gateway.runtime.access import Access
from gateway.runtime.approvals import ApprovalBroker
from gateway.runtime.calls import StepWork
from gateway.runtime.commands import QUEUE, find_command
from gateway.runtime.config import GatewayConfig, ToolSearchConfig
from gateway.runtime.context import Context
from gateway.runtime.deterministic import saying
from gateway.runtime.direct_call import direct_call
from gateway.runtime.journal import Journal
from gateway.runtime.model_call import ModelCaller
from gateway.runtime.narration import AgentLog
from gateway.runtime.permitted import Permitted
from gateway.runtime.persist import persist
from gateway.runtime.toolbox import Toolbox
from gateway.runtime.toolsets import narrowed
from gateway.runtime.turn import Ending, Turn
from gateway.runtime.wakeups import Wakeups
from gateway.telemetry.faults import FaultPoint, reach

logger = logging.getLogger(__name__)

QUEUE_USAGE: Final = "Usage: `/queue TEXT` answers TEXT in a turn of its own."


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
        provider: ModelProvider,
        host: ToolHost,
        broker: ApprovalBroker,
        access: Access,
        renderers: Mapping[str, Renderer],
        wakeups: Wakeups,
        clock: Clock,
        log: AgentLog,
        config: TurnConfig,
    ) -> None:
        self._store = store
        self._conversations = conversations
        self._provider = provider
        self._host = host
        self._broker = broker
        self._access = access
        self._renderers = renderers
        self._wakeups = wakeups
        self._clock = clock
        self._log = log
        self._config = config
        self._servers_seen = False

    def open(self, claim: Claim, *, arrivals: asyncio.Event) -> Turn:
        """Return the turn of a claim, ready to run; `arrivals` says that something may join it."""
        provider = self._provider_of(claim)
        caller = ModelCaller(clock=self._clock, log=self._log)
        host = Permitted(
            host=narrowed(self._host, _toolsets(claim)),
            access=self._access,
            people=_people(claim),
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
                configured_prompt=self._config.gateway.system_prompt,
            ),
            work=StepWork(
                claim=claim,
                toolbox=toolbox,
                journal=journal,
                broker=self._broker,
                clock=self._clock,
                log=self._log,
            ),
            caller=caller,
            provider=provider,
            config=self._config.gateway,
            arrivals=arrivals,
        )

    async def wait_for_servers(self) -> None:
        """Give the servers a bounded time to be listed, before the first turns only."""
        if self._servers_seen:
            return
        await self._host.wait_ready(self._config.first_wait)
        self._servers_seen = True

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
            reply=ending.reply,
            parts=self._rendered(claim, ending.reply),
            replied=ending.replied,
            usage=ending.usage,
            error=ending.error,
            not_before=not_before,
        )
        await reach(FaultPoint.REPLY_READY)
        committed = await persist(lambda: self._store.commit_turn(commit), clock=self._clock)
        await reach(FaultPoint.REPLY_COMMITTED)
        self._wakeups.deliveries()
        return committed

    async def give_back(self, claim: Claim) -> None:
        """Release a claim; the turn is taken up again by whoever claims it next."""
        await self._store.release(Release(conversation=claim.conversation, fence=claim.fence))

    def _rendered(self, claim: Claim, text: str) -> tuple[Part, ...]:
        renderer = self._renderers.get(claim.place.platform)
        if renderer is None:
            logger.error("no renderer for %s: the reply is stored, not sent", claim.place.platform)
            return ()
        return renderer.text(text)

    def _provider_of(self, claim: Claim) -> ModelProvider:
        event = claim.inputs[0].event if claim.inputs else None
        if not isinstance(event, CommandGiven):
            return self._provider
        command = find_command(event.name)
        if command is None or command.lane is not Lane.TURN:
            return saying(f"/{event.name} is not known here. /help lists the commands.")
        if not self._access.may_command(event.sender, command.name, place=event.place):
            return saying(f"You may not use /{event.name} here.")
        # With a text it would have come as that message.
        return saying(QUEUE_USAGE) if command.name == QUEUE else direct_call(event.argument)


def _people(claim: Claim) -> tuple[Actor, ...]:
    """Return whose words the turn answers: it may do what all of them may."""
    return (claim.requester, *(item.event.sender for item in claim.inputs))


def _toolsets(claim: Claim) -> Sequence[str]:
    """Return what the newest of the inputs may use: the chat it came from may have been narrowed."""
    event = claim.inputs[-1].event if claim.inputs else None
    return event.toolsets if isinstance(event, (InboundMessage, CommandGiven)) else ()
