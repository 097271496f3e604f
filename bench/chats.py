"""People who talk to a whole runtime in this process, for the benches of turns.

The model answers from a script and the platform is a loopback, so only our own work and the
store at `synchronous=FULL` are left.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.domain.delivery import Delivery, DeliveryKind
from gateway.domain.ids import Place
from tests.fakes.house import House, running
from tests.fakes.loopback import Loopback
from tests.fakes.model import ScriptedModel
from tests.fakes.tools import FakeTools

TEXT: Final = "lorem ipsum dolor sit amet " * 8


@dataclass(slots=True)
class _Replies:
    """When the next reply goes to each place."""

    awaited: dict[Place, asyncio.Future[float]] = field(
        default_factory=dict[Place, "asyncio.Future[float]"]
    )

    def to(self, place: Place) -> asyncio.Future[float]:
        reply = self.awaited[place] = asyncio.get_running_loop().create_future()
        return reply

    def sent(self, delivery: Delivery) -> None:
        if delivery.kind is DeliveryKind.TEXT:
            self.awaited.pop(delivery.place).set_result(time.perf_counter())


@dataclass(frozen=True, slots=True, kw_only=True)
class Chats:
    """A running runtime, talked to through its intake."""

    house: House
    replies: _Replies

    async def turn(self, place: Place) -> float:
        """Say something and return the ms until its reply is handed to the platform."""
        reply = self.replies.to(place)
        began = time.perf_counter()
        await self.house.say(TEXT, place=place)
        return (await reply - began) * 1000

    def turns_done(self) -> int:
        """Return how many turns the store holds as done."""
        [(done,)] = self.house.rows("SELECT count(*) FROM turn WHERE state = 'done'")
        return int(done)


@asynccontextmanager
async def chatting(
    model: ScriptedModel, *, tools: FakeTools | None = None
) -> AsyncGenerator[Chats]:
    """Run a runtime on a new store until the block ends."""
    replies = _Replies()
    with tempfile.TemporaryDirectory() as home:
        adapter = Loopback(on_send=replies.sent)
        async with running(Path(home), model, tools=tools, adapter=adapter) as house:
            yield Chats(house=house, replies=replies)
