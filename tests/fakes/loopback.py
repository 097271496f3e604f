"""A chat platform in the process: what is sent is written down, what is said comes from the test."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gateway.domain.delivery import Delivery, DeliveryKind, Part, Receipt
from gateway.domain.errors import FileGone
from gateway.domain.files import FileLimits
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.message import Attachment, ButtonPressed, CommandGiven, InboundMessage
from gateway.ports import Capabilities, CardView, EventSink
from tests.support.clock import NOON

PLATFORM = "loop"
ANNA = Actor(platform=PLATFORM, id="1", name="Anna")
FILE_LIMITS = FileLimits(file=5_000, image=1_000, album=3, caption=20)
BEN = Actor(platform=PLATFORM, id="2", name="Ben")


def chat(number: int = 1) -> Place:
    return Place(platform=PLATFORM, chat=str(number), chat_type=ChatType.DM)


@dataclass(slots=True, kw_only=True)
class Loopback:
    """Implements `Adapter` and `FileFetching`.

    `on_send` may raise, wait, or look around before a send counts. `files` by their `ref`: what they
    hold in pieces, or what is raised; `gate` holds up all of them, `fetched` says what was asked.
    """

    sent: list[Delivery] = field(default_factory=list[Delivery])
    settled: list[Delivery] = field(default_factory=list[Delivery])
    on_send: Callable[[Delivery], None] | None = None
    on_settle: Callable[[Delivery], Receipt | None] | None = None
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    ends: asyncio.Event = field(default_factory=asyncio.Event)
    failures: list[Exception] = field(default_factory=list[Exception])
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _ids: "itertools.count[int]" = field(default_factory=itertools.count)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    sink: EventSink | None = None
    files: dict[str, Sequence[bytes] | Exception] = field(
        default_factory=dict[str, "Sequence[bytes] | Exception"]
    )
    fetched: list[str] = field(default_factory=list[str])
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def platform(self) -> str:
        return PLATFORM

    @property
    def account(self) -> str:
        return ""

    async def run(self, sink: EventSink) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.sink = sink
        self.connected.set()
        await self.ends.wait()

    async def send(self, delivery: Delivery) -> Receipt:
        if self.on_send is not None:
            self.on_send(delivery)
        self.sent.append(delivery)
        self._news.set()
        return Receipt(native_id=f"m{next(self._ids)}")

    async def settle_unsure(self, delivery: Delivery) -> Receipt | None:
        self.settled.append(delivery)
        return self.on_settle(delivery) if self.on_settle else None

    @asynccontextmanager
    async def fetch(self, file: Attachment) -> AsyncGenerator[AsyncIterator[bytes]]:
        ref = file.ref or ""
        self.fetched.append(ref)
        self._news.set()
        await self.gate.wait()
        held = self.files.get(ref, FileGone(PLATFORM))
        if isinstance(held, Exception):
            raise held
        yield _pieces(held)

    def texts(self, place: Place | None = None) -> list[str]:
        """What people read as replies, in the order it was sent."""
        return [
            item.body
            for item in self.sent
            if item.kind is DeliveryKind.TEXT and place in {None, item.place}
        ]

    def cards(self) -> list[Delivery]:
        return [item for item in self.sent if item.kind is DeliveryKind.CARD]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once what was sent makes `holds()` true."""
        async with asyncio.timeout(10):
            while not holds():
                self._news.clear()
                await self._news.wait()


async def _pieces(held: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in held:
        yield piece


def message(
    text: str,
    *,
    n: int,
    place: Place | None = None,
    sender: Actor = ANNA,
    files: tuple[Attachment, ...] = (),
    album: str = "",
) -> InboundMessage:
    where = place or chat()
    return InboundMessage(
        place=where,
        native_id=f"n{n}",
        dedupe=f"{PLATFORM}::{n}",
        sender=sender,
        sent_at=NOON,
        text=text,
        attachments=files,
        album=album,
    )


def command(
    name: str, argument: str = "", *, n: int, place: Place | None = None, sender: Actor = ANNA
) -> CommandGiven:
    return CommandGiven(
        place=place or chat(),
        native_id=f"n{n}",
        dedupe=f"{PLATFORM}::{n}",
        sender=sender,
        sent_at=NOON,
        name=name,
        argument=argument,
    )


def press(token: str, *, n: int, place: Place | None = None, sender: Actor = ANNA) -> ButtonPressed:
    return ButtonPressed(
        place=place or chat(),
        native_id=f"n{n}",
        dedupe=f"{PLATFORM}::{n}",
        sender=sender,
        sent_at=NOON,
        token=token,
    )


def token_of(card: Delivery, label: str) -> str:
    """The token of a card's button."""
    return dict(json.loads(card.payload)["buttons"])[label]


class LoopbackRenderer:
    """Implements `Renderer`: texts as they are, a card's buttons as JSON."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(max_text=None, buttons=True, edits=True, files=FILE_LIMITS)

    def text(self, markdown: str) -> tuple[Part, ...]:
        return (Part(kind=DeliveryKind.TEXT, body=markdown),) if markdown.strip() else ()

    def card(self, view: CardView) -> tuple[Part, Part | None]:
        buttons = [[button.label, button.token] for button in view.buttons]
        payload = json.dumps({"buttons": buttons, "reply": view.reply_token})
        body = "\n".join((view.title, view.text, view.arguments, *view.lines))
        return Part(kind=DeliveryKind.CARD, body=body, payload=payload), None

    def closed_card(self, view: CardView) -> Part:
        return Part(kind=DeliveryKind.EDIT, body=f"{view.title}\n{view.closed}")
