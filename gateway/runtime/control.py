"""Works off control events (presses, answers to forms, commands) while turns go on.

In order within a conversation, side by side between conversations. Effects are idempotent: an
event that was interrupted is simply worked off again. What a press may do is judged elsewhere.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, assert_never

from gateway.domain.delivery import Origin
from gateway.domain.errors import AdapterError, GatewayError
from gateway.domain.ids import ConversationId, InboundId, Place
from gateway.domain.message import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    InboundMessage,
    MessageDeleted,
    MessageEdited,
)
from gateway.domain.operations.deliveries import Enqueue, Enqueued
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.questions import Settled
from gateway.ports import Clock, Inbox, PressAnswering, Renderer
from gateway.runtime.command_replies import CommandReplies
from gateway.runtime.persist import persist
from gateway.runtime.presses import Answered, Presses
from gateway.runtime.wakeups import Wakeups

logger = logging.getLogger(__name__)

PRESS_ANSWER_SECONDS: Final = 5.0
"""How long a platform may take to show somebody the answer to a press."""

FAILED: Final = "Something went wrong on our side; the log has the detail. Please try again."


class ControlStore(Protocol):
    """What the worker itself writes."""

    async def finish(self, inbound: InboundId) -> None:
        """Mark an event as worked off."""
        ...

    async def enqueue(self, enqueue: Enqueue) -> Enqueued: ...


class ControlWorker:
    """`run` works until cancelled; `answering` are the adapters, by platform and account."""

    def __init__(
        self,
        store: ControlStore,
        inbox: Inbox,
        renderers: Mapping[str, Renderer],
        presses: Presses,
        commands: CommandReplies,
        wakeups: Wakeups,
        clock: Clock,
        *,
        answering: Mapping[tuple[str, str], PressAnswering] | None = None,
    ) -> None:
        self._store = store
        self._inbox = inbox
        self._renderers = renderers
        self._presses = presses
        self._commands = commands
        self._wakeups = wakeups
        self._clock = clock
        self._answering = answering or {}
        self._busy: set[ConversationId] = set()
        # A list read while an event was being finished may still hold it.
        self._worked_off: set[InboundId] = set()

    async def run(self) -> None:
        """Work off what waits, now and at every ring."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                waiting = await persist(self._inbox.controls, clock=self._clock)
                self._worked_off &= {stored.id for stored in waiting}
                new = [stored for stored in waiting if stored.id not in self._worked_off]
                for conversation, events in _by_conversation(new).items():
                    if conversation in self._busy:
                        continue
                    self._busy.add(conversation)
                    tasks.create_task(
                        self._work(conversation, events), name=f"control:{conversation}"
                    )
                await self._wakeups.wait_controls()

    async def _work(self, conversation: ConversationId, events: Sequence[StoredInbound]) -> None:
        try:
            for stored in events:
                await self._safely(stored)
                self._worked_off.add(stored.id)
        finally:
            self._busy.discard(conversation)
            # What arrived for this conversation meanwhile was left to the next reading.
            self._wakeups.controls()

    async def _safely(self, stored: StoredInbound) -> None:
        try:
            await persist(lambda: self._one(stored), clock=self._clock)
        except Exception as error:
            logger.exception("control event %d failed", stored.id)
            await self._give_up(stored, error)

    async def _give_up(self, stored: StoredInbound, error: Exception) -> None:
        text = error.public_message if isinstance(error, GatewayError) else FAILED
        try:
            await self._answer(stored, text, done=False)
            await self._store.finish(stored.id)
        except GatewayError:
            logger.exception("control event %d could not be closed", stored.id)

    async def _one(self, stored: StoredInbound) -> None:
        event = stored.event
        match event:
            case ButtonPressed():
                answered = await self._presses.press(event, inbound=stored.id)
                await self._close(stored, answered)
            case FormSubmitted():
                answered = await self._presses.submit(event)
                await self._close(stored, answered)
            case CommandGiven():
                text = await self._commands.answer(stored, event)
                await self._post(stored, text, Origin.COMMAND)
            case InboundMessage() | MessageEdited() | MessageDeleted():
                await self._store.finish(stored.id)
            case _:
                assert_never(event)

    async def _close(self, stored: StoredInbound, answered: Answered) -> None:
        await self._answer(stored, answered.text, done=isinstance(answered.ruling, Settled))
        await self._store.finish(stored.id)

    async def _answer(self, stored: StoredInbound, text: str, *, done: bool) -> None:
        """Tell the presser alone where the platform can, else in the chat what a card does not say."""
        event = stored.event
        adapter = self._answering.get((event.place.platform, event.place.account))
        interaction = event.interaction if isinstance(event, (ButtonPressed, FormSubmitted)) else ""
        if adapter is not None and interaction:
            await self._toast(adapter, event.place, interaction, text)
        elif text and not done:
            await self._post(stored, text, Origin.NOTICE)

    async def _toast(
        self, adapter: PressAnswering, place: Place, interaction: str, text: str
    ) -> None:
        try:
            async with asyncio.timeout(PRESS_ANSWER_SECONDS):
                await adapter.answer_press(place, interaction, text)
        except (AdapterError, TimeoutError) as error:
            logger.warning("a press on %s could not be answered: %s", place.platform, error)

    async def _post(self, stored: StoredInbound, text: str, origin: Origin) -> None:
        place = stored.event.place
        renderer = self._renderers.get(place.platform)
        parts = renderer.text(text) if renderer is not None else ()
        if not parts:
            await self._store.finish(stored.id)
            return
        await self._store.enqueue(
            Enqueue(
                place=place,
                group_key=f"control:{stored.id}",
                parts=parts,
                origin=origin,
                inbound=stored.id,
            )
        )
        self._wakeups.deliveries()


def _by_conversation(
    events: Sequence[StoredInbound],
) -> Mapping[ConversationId, Sequence[StoredInbound]]:
    found: dict[ConversationId, list[StoredInbound]] = {}
    for stored in events:
        found.setdefault(stored.conversation, []).append(stored)
    return found
