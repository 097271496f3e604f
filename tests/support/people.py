"""People and a bot in one process: the real store, the asking side of the runtime, a chat in memory."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from gateway.domain.canonical import CanonicalJson, canonical, sha256_of
from gateway.domain.deadline import Deadline
from gateway.domain.delivery import Delivery, DeliveryKind, Receipt, Sent
from gateway.domain.errors import ModelRejected
from gateway.domain.ids import Actor, ChatType, Place, QuestionId
from gateway.domain.message import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    InboundEvent,
    InboundMessage,
)
from gateway.domain.operations.deliveries import ClaimDelivery
from gateway.domain.operations.inbound import Accept, Accepted, Lane
from gateway.domain.operations.turns import Claim, CommitTurn, PlannedStep, RecordSteps, TurnEnd
from gateway.domain.question import Question
from gateway.domain.tools import Reloaded, ServerStatus, ToolCall, ToolSpec
from gateway.ports import ModelProvider, PressAnswering, Readers, Store
from gateway.runtime.access import Access
from gateway.runtime.approval_replies import ApprovalReplies
from gateway.runtime.approvals import ApprovalBroker
from gateway.runtime.chat_logins import ChatLogins
from gateway.runtime.command_replies import CommandReplies, GeneralReplies
from gateway.runtime.config import AccessConfig, ApprovalsConfig
from gateway.runtime.control import ControlWorker
from gateway.runtime.decisions import Decisions
from gateway.runtime.homes import Homes
from gateway.runtime.model_choice import ModelChoice
from gateway.runtime.model_replies import ModelReplies
from gateway.runtime.presses import Presses
from gateway.runtime.routing import Routing
from gateway.runtime.session_replies import SessionReplies
from gateway.runtime.tool_replies import ToolReplies
from gateway.runtime.wakeups import Wakeups
from store import open_store
from tests.fakes.loopback import PLATFORM, LoopbackRenderer
from tests.fakes.model import ScriptedModel
from tests.fakes.tools import FakeTools, tool
from tests.support.clock import ManualClock

ANNA = Actor(platform=PLATFORM, id="1", name="Anna")
BEN = Actor(platform=PLATFORM, id="2", name="Ben")
ROOT = Actor(platform=PLATFORM, id="9", name="Root")
STRANGER = Actor(platform=PLATFORM, id="7", name="Anna")
GROUP = Place(platform=PLATFORM, chat="g", chat_type=ChatType.THREAD, thread="t")
WAIT_SECONDS = 10
_NUMBERS = itertools.count(1)
"""Native ids stay unique over a restart."""


@dataclass(slots=True, kw_only=True)
class Toasts:
    """Implements `PressAnswering`."""

    shown: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def answer_press(self, place: Place, interaction: str, text: str) -> None:
        self.shown.append((interaction, text))


@dataclass(slots=True, kw_only=True)
class Host(FakeTools):
    """A tool host whose servers and reloads are what a test says."""

    statuses: list[ServerStatus] = field(default_factory=list[ServerStatus])
    reloaded: Reloaded = field(default_factory=Reloaded)
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.hold.set()

    def servers(self) -> Sequence[ServerStatus]:
        return [*FakeTools.servers(self), *self.statuses]

    async def reload(self, server: str | None = None) -> Reloaded:
        self.reached.set()
        await self.hold.wait()
        return self.reloaded


@dataclass(slots=True, kw_only=True)
class People:
    """Everything a test does in a chat; deliveries are sent by `sent()`."""

    store: Store
    readers: Readers
    clock: ManualClock
    wakeups: Wakeups
    access: Access
    config: ApprovalsConfig
    broker: ApprovalBroker
    decisions: Decisions
    worker: ControlWorker
    host: Host
    toasts: Toasts
    stopped: list[tuple[Place, Actor]]
    tasks: asyncio.TaskGroup
    log: list[Delivery] = field(default_factory=list[Delivery])
    numbers: "itertools.count[int]"

    # --- a turn ---------------------------------------------------------------------

    async def turn(self, *, place: Place = GROUP, sender: Actor = ANNA) -> Claim:
        await self.accept(self.message("go", place, sender), lane=Lane.TURN)
        claim = await self.store.claim_turn(worker="w")
        assert claim is not None
        return claim

    async def call(
        self,
        arguments: Mapping[str, object] | None = None,
        *,
        claim: Claim | None = None,
        spec: ToolSpec | None = None,
        step: int = 1,
    ) -> ToolCall:
        held = claim or await self.turn()
        wanted = spec or tool("add_note")
        text = canonical(dict(arguments or {"text": "hello"}))
        await self.store.record_steps(
            RecordSteps(
                turn=held.turn,
                fence=held.fence,
                rounds=1,
                planned=(_planned(step, wanted, text),),
            )
        )
        return ToolCall(
            id=f"{held.turn}:{step}",
            alias=wanted.alias,
            arguments=text,
            place=held.place,
            requester=held.requester,
            session=held.session,
            turn=held.turn,
            step=step,
        )

    async def end(self, claim: Claim) -> None:
        """Give a turn an empty end."""
        await self.store.commit_turn(
            CommitTurn(
                conversation=claim.conversation,
                turn=claim.turn,
                fence=claim.fence,
                end=TurnEnd.DONE,
                reply="",
                parts=(),
            )
        )

    # --- what people do ---------------------------------------------------------------

    async def accept(self, event: InboundEvent, *, lane: Lane = Lane.CONTROL) -> Accepted:
        accepted = await self.store.accept(Accept(event=event, lane=lane))
        assert isinstance(accepted, Accepted)
        if lane is Lane.CONTROL:
            self.wakeups.controls()
        return accepted

    async def press(
        self, token: str, *, by: Actor = ANNA, place: Place = GROUP, interaction: str = ""
    ) -> None:
        number = next(self.numbers)
        await self._done(
            ButtonPressed(
                place=place,
                native_id=f"n{number}",
                dedupe=f"d{number}",
                sender=by,
                sent_at=self.clock.now(),
                token=token,
                interaction=interaction,
            )
        )

    async def type(self, card: Delivery, text: str, *, by: Actor = ANNA) -> None:
        payload = json.loads(card.payload)
        number = next(self.numbers)
        await self._done(
            FormSubmitted(
                place=GROUP,
                native_id=f"n{number}",
                dedupe=f"d{number}",
                sender=by,
                sent_at=self.clock.now(),
                token=payload["reply"],
                values={payload["field"]: text},
            )
        )

    async def say(
        self, name: str, argument: str = "", *, by: Actor = ANNA, place: Place = GROUP
    ) -> str:
        """Give a command and return what was answered, "" for nothing."""
        number = next(self.numbers)
        await self._done(
            CommandGiven(
                place=place,
                native_id=f"n{number}",
                dedupe=f"d{number}",
                sender=by,
                sent_at=self.clock.now(),
                name=name,
                argument=argument,
            )
        )
        texts = [item.body for item in await self.sent() if item.kind is DeliveryKind.TEXT]
        return texts[-1] if texts else ""

    async def _done(self, event: InboundEvent) -> None:
        accepted = await self.accept(event)
        async with asyncio.timeout(WAIT_SECONDS):
            while any(item.id == accepted.inbound for item in await self.readers.inbox.controls()):
                continue

    def message(self, text: str, place: Place, sender: Actor) -> InboundMessage:
        number = next(self.numbers)
        return InboundMessage(
            place=place,
            native_id=f"n{number}",
            dedupe=f"d{number}",
            sender=sender,
            sent_at=self.clock.now(),
            text=text,
        )

    # --- what people see ----------------------------------------------------------------

    async def sent(self) -> list[Delivery]:
        """Send whatever waits and return it."""
        found: list[Delivery] = []
        while True:
            delivery = await self.store.claim_delivery(
                ClaimDelivery(
                    platform=PLATFORM,
                    account="",
                    worker="d",
                    lease_until=self.clock.now() + timedelta(minutes=1),
                    cost_ms=dict.fromkeys(DeliveryKind, 0),
                    burst_ms=1000,
                )
            )
            if delivery is None:
                self.log += found
                return found
            found.append(delivery)
            receipt = Receipt(native_id=f"m{delivery.id}")
            await self.store.mark_delivery(Sent(id=delivery.id, receipt=receipt))

    async def card(self) -> Delivery:
        """Wait for the next card and return it."""
        with self.wakeups.delivery_bell() as bell:
            async with asyncio.timeout(WAIT_SECONDS):
                while True:
                    cards = [x for x in await self.sent() if x.kind is DeliveryKind.CARD]
                    if cards:
                        return cards[-1]
                    await bell.wait()

    async def closed(self) -> str:
        """Wait for the edit that closes a card and return its text."""
        with self.wakeups.delivery_bell() as bell:
            async with asyncio.timeout(WAIT_SECONDS):
                while True:
                    edits = [x for x in await self.sent() if x.kind is DeliveryKind.EDIT]
                    if edits:
                        return edits[-1].body
                    await bell.wait()

    async def question(self, identifier: QuestionId | str) -> Question:
        found = await self.readers.questions.find(identifier)
        assert isinstance(found, Question)
        return found

    async def only_question(self) -> Question:
        (found,) = await self.readers.questions.pending()
        return found


class CardRenderer(LoopbackRenderer):
    """Also says which field a typed answer is for, and keeps a card's words in its closing edit."""

    def card(self, view: Any) -> Any:
        part, file = super().card(view)
        payload = json.loads(part.payload) | {"field": view.field, "short": view.short}
        return type(part)(kind=part.kind, body=part.body, payload=json.dumps(payload)), file


def known_model(name: str) -> ModelProvider:
    """Find any model of the provider `scripted`; another cannot be used."""
    if not name.startswith("scripted:"):
        raise ModelRejected(name, "it needs a key")
    return ScriptedModel(name=name)


def dm(actor: Actor) -> Place:
    return Place(platform=PLATFORM, chat=actor.id, chat_type=ChatType.DM)


def buttons(card: Delivery) -> list[str]:
    return [label for label, _ in json.loads(card.payload)["buttons"]]


def token(card: Delivery, label: str) -> str:
    return dict(json.loads(card.payload)["buttons"])[label]


def short(card: Delivery) -> str:
    return json.loads(card.payload)["short"]


def limit() -> Deadline:
    return Deadline(WAIT_SECONDS)


@asynccontextmanager
async def people(
    path: Path,
    *,
    clock: ManualClock | None = None,
    config: ApprovalsConfig | None = None,
    platforms: tuple[str, ...] = (PLATFORM,),
    toasts: bool = False,
    working: bool = True,
    access: AccessConfig | None = None,
    answerable: Callable[[Place], bool] = lambda place: True,
) -> AsyncGenerator[People]:
    """Open the store at `path`, with a control worker that runs when `working`."""
    time = clock or ManualClock()
    approvals = config or ApprovalsConfig()
    wakeups = Wakeups()
    judge = Access(
        access or AccessConfig(admins=frozenset({str(ROOT)})),
        allowed={PLATFORM: frozenset({ANNA.id, BEN.id})},
    )
    renderers = {platform: CardRenderer() for platform in platforms}
    stopped: list[tuple[Place, Actor]] = []

    async def stop(place: Place, *, by: Actor) -> bool:
        stopped.append((place, by))
        return len(stopped) == 1

    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(open_store(path, clock=time))
        store, readers = opened.store, opened.readers
        questions = readers.questions
        routing = Routing(readers.channels, renderers, judge, approvals, answerable=answerable)
        broker = ApprovalBroker(
            store, questions, readers.rules, renderers, judge, wakeups, time, approvals, routing
        )
        decisions = broker.decisions
        presses = Presses(store, questions, renderers, decisions, wakeups, time, approvals)
        host = Host()
        seen = Toasts()
        answering: dict[tuple[str, str], PressAnswering] = {(PLATFORM, ""): seen} if toasts else {}
        choice = ModelChoice(default=ScriptedModel(), find=known_model)
        commands = CommandReplies(
            judge,
            GeneralReplies(readers, host, judge, stop).replies,
            ToolReplies(host, judge, time).replies,
            SessionReplies(readers.conversations, store).replies,
            ModelReplies(readers.conversations, store, judge, choice).replies,
            ApprovalReplies(questions, decisions, time).replies,
            ChatLogins(None, store, renderers, wakeups, time).replies,
            Homes(store).replies,
        )
        worker = ControlWorker(
            store, readers.inbox, renderers, presses, commands, wakeups, time, answering=answering
        )
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(worker.run(), name="control") if working else None
            yield People(
                store=store,
                readers=readers,
                clock=time,
                wakeups=wakeups,
                access=judge,
                config=approvals,
                broker=broker,
                decisions=decisions,
                worker=worker,
                host=host,
                toasts=seen,
                stopped=stopped,
                tasks=tasks,
                numbers=_NUMBERS,
            )
            if running is not None:
                running.cancel()


def _planned(step: int, spec: ToolSpec, arguments: CanonicalJson) -> PlannedStep:
    return PlannedStep(
        n=step,
        call_id=f"c{step}",
        server=spec.server,
        tool=spec.name,
        tool_def_sha=spec.definition_sha,
        arguments=arguments,
        args_sha=sha256_of(arguments),
        repeatable=spec.repeatable,
    )
