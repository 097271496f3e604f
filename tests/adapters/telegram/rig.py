"""A Telegram adapter on a test server, with everything behind it in memory."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import SecretStr

from adapters.telegram.adapter import Setting, TelegramAdapter, open_telegram
from adapters.telegram.config import TelegramAccount
from gateway.domain.delivery import (
    Delivery,
    DeliveryKind,
    KnownId,
    Mark,
    Neighbours,
    Part,
    Receipt,
    SentMessage,
)
from gateway.domain.ids import ChatType, DeliveryId, Place
from gateway.domain.message import InboundEvent, InboundMessage
from gateway.domain.operations.inbound import MigrateChat
from gateway.ports import Media
from gateway.runtime.no_media import NoMedia
from tests.fakes.clock import HastyClock
from tests.fakes.telegram import UNLIMITED, Town, telegram_server

TOKEN = "123456:test-token-that-is-no-secret"


class Inbox:
    """Implements `EventSink`; `failures` are raised first, one an event."""

    def __init__(self) -> None:
        self.events: list[InboundEvent] = []
        self.backlogs: list[bool] = []
        self.positions: list[tuple[str, str]] = []
        self.failures: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._news = asyncio.Event()

    async def emit(self, event: InboundEvent, *, position: tuple[str, str] | None = None) -> None:
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.events.append(event)
        if position is not None:
            self.positions.append(position)
        self._news.set()

    def backlog(self, *, platform: str, account: str, waits: bool) -> None:
        self.backlogs.append(waits)
        self._news.set()

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, InboundMessage)]

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(10):
            while not holds():
                self._news.clear()
                await self._news.wait()


@dataclass(slots=True)
class Ledger:
    """Implements `SentMessages` and the part of `InboundStore` an adapter uses."""

    known: list[KnownId] = field(default_factory=list[KnownId])
    unsettled: int = 1
    sent: list[SentMessage] = field(default_factory=list[SentMessage])
    answers: dict[DeliveryId, str] = field(default_factory=dict[DeliveryId, str])
    moved: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def find(
        self, platform: str, account: str, chat: str, native_ids: Sequence[str]
    ) -> SentMessage | None:
        return next(
            (
                item
                for item in self.sent
                if item.place.chat == chat and item.native_id in native_ids
            ),
            None,
        )

    async def neighbours(self, delivery: DeliveryId) -> Neighbours:
        return Neighbours(known=tuple(self.known), unsettled=self.unsettled)

    async def parked(self, platform: str, account: str) -> Mapping[str, datetime]:
        return {}

    async def answered(self, delivery: DeliveryId) -> str | None:
        return self.answers.get(delivery)

    async def migrate_chat(self, migrate: MigrateChat) -> int:
        self.moved.append((migrate.old, migrate.new))
        return 1


@dataclass(slots=True, kw_only=True)
class Rig:
    town: Town
    adapter: TelegramAdapter
    inbox: Inbox
    ledger: Ledger
    clock: HastyClock
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def delivery(
        self, place: Place, part: Part, *, edits: str | None = None, repeat: bool = False
    ) -> Delivery:
        number = next(self._numbers)
        return Delivery(
            id=DeliveryId(number),
            place=place,
            kind=part.kind,
            body=part.body,
            payload=part.payload,
            files=part.files,
            key=f"g{number}:0",
            attempt=1,
            edits=edits,
            marks=frozenset({Mark.REPEAT}) if repeat else frozenset(),
        )

    async def say(self, place: Place, text: str) -> Receipt:
        part = Part(kind=DeliveryKind.TEXT, body=text)
        return await self.adapter.send(self.delivery(place, part))

    def account_for(self, chat: int, message: int, *, earlier: bool = True) -> None:
        """Put an id into the ledger."""
        self.ledger.known.append(KnownId(chat=str(chat), native_id=str(message), earlier=earlier))


def dm(chat: int = 111) -> Place:
    return Place(platform="telegram", chat=str(chat), chat_type=ChatType.DM)


def group(chat: int, *, participant: str = "111") -> Place:
    return Place(
        platform="telegram", chat=str(chat), chat_type=ChatType.GROUP, participant=participant
    )


def topic(chat: int, thread: int | str) -> Place:
    return Place(platform="telegram", chat=str(chat), chat_type=ChatType.TOPIC, thread=str(thread))


def account(town: Town, **values: object) -> TelegramAccount:
    given = {"token": SecretStr(town.bot(TOKEN).token), "base_url": town.base_url, **values}
    return TelegramAccount.model_validate(given)


@asynccontextmanager
async def rig(
    town: Town,
    *,
    setting: Setting | None = None,
    connected: bool = True,
    ledger: Ledger | None = None,
    media: Media | None = None,
    **values: object,
) -> AsyncGenerator[Rig]:
    """Run an adapter against the server until the end of the block."""
    clock, inbox, kept = HastyClock(), Inbox(), ledger or Ledger()
    async with open_telegram(
        account(town, **values),
        sent=kept,
        chats=kept,
        media=media or NoMedia(),
        clock=clock,
        setting=setting,
    ) as adapter:
        running = asyncio.create_task(adapter.run(inbox), name="adapter under test")
        try:
            if connected:
                await town.until(lambda: town.count("getUpdates"), what="the first poll")
            yield Rig(town=town, adapter=adapter, inbox=inbox, ledger=kept, clock=clock)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def unhurried(**values: Any) -> AsyncGenerator[Town]:
    """A server without rates, for tests that are about something else."""
    async with telegram_server(rates=UNLIMITED, **values) as town:
        town.bot(TOKEN)
        yield town
