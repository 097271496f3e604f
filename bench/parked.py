"""What a chat that must wait 1000 s costs the others: a turn on Telegram beside it, and without it.

Two gateways take turns in blocks on the fake Telegram. One has a chat that Telegram wants to hear nothing
of, whose person goes on writing; the other has not, and is the floor.
"""

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.chats import TEXT
from bench.report import emit, median, percentile, spread
from bench.service import Bot, answered, bot_with_people, gateway_of, telegram
from tests.fakes.telegram import ChatDriver, Town, flood
from tests.support.scripted import model_process

BLOCKS: Final = 6
PEOPLE: Final = 30
"""Each takes one turn of a block, after one to warm up."""
PENALTY_SECONDS: Final = 1_000
WAITING: Final = 20
"""Messages of the parked chat that nobody is answered, and as many again before each block."""
MAX_RATIO: Final = 1.1


@dataclass(slots=True, kw_only=True)
class Side:
    """One gateway; `blocks` are ms of the chats that need not wait, oldest first."""

    bot: Bot
    blocks: list[list[float]] = field(default_factory=list[list[float]])

    async def talk(self, town: Town) -> list[float]:
        return [await answered(town, chat, TEXT) for chat in self.bot.chats[1:]]

    @property
    def first(self) -> ChatDriver:
        """The chat that waits on the one side and says nothing on the other."""
        return self.bot.chats[0]

    @property
    def all(self) -> list[float]:
        return [ms for block in self.blocks for ms in block]


@asynccontextmanager
async def _sides(folder: Path, *, people: int) -> AsyncGenerator[tuple[Town, Side, Side]]:
    async with AsyncExitStack() as stack:
        town = await stack.enter_async_context(telegram())
        record = folder / "requests.jsonl"
        url = stack.enter_context(model_process("tests.e2e.obedient", "--record", str(record)))
        model = {"provider": "openai", "name": "scripted", "base_url": url}
        sides = [Side(bot=bot_with_people(town, n, people=people + 1)) for n in (1, 2)]
        for number, side in enumerate(sides):
            home = folder / f"home{number}"
            await stack.enter_async_context(gateway_of(town, side.bot, home, model=model))
        yield town, sides[0], sides[1]


async def _park(town: Town, side: Side) -> None:
    town.fail(flood("sendMessage", PENALTY_SECONDS, chat=side.first.id))
    await side.first.say(TEXT)
    await town.until(lambda: refused(town, side), what="the refusal")


async def _pile_up(side: Side) -> None:
    for _ in range(WAITING):
        await side.first.say(TEXT)


def refused(town: Town, side: Side) -> int:
    """Return how often a send to the parked chat was refused: more than once is none of its wait."""
    return town.count("sendMessage", chat=side.first.id, ok=False)


async def measure(*, blocks: int, people: int) -> tuple[Side, Side, int]:
    """Return the side with a parked chat, the one without, and the sends that were refused."""
    with tempfile.TemporaryDirectory() as folder:
        async with _sides(Path(folder), people=people) as (town, parked, free):
            for side in (parked, free):
                await side.talk(town)
            await _park(town, parked)
            for _ in range(blocks):
                await _pile_up(parked)
                for side in (parked, free):
                    side.blocks.append(await side.talk(town))
            return parked, free, refused(town, parked)


def main() -> None:
    parked, free, tries = asyncio.run(measure(blocks=BLOCKS, people=PEOPLE))
    assert tries == 1, "the parked chat was not left alone"
    ours, floor = median(parked.all), median(free.all)
    emit(
        {
            "name": "parked",
            "unit": "ms",
            "ours": round(ours, 2),
            "floor": round(floor, 2),
            "floor_is": "the same gateway with no chat that must wait",
            "ratio": round(ours / floor, 3),
            "p50_ms": round(ours, 2),
            "p95_ms": round(percentile(parked.all, 0.95), 2),
            "spread": spread([median(block) for block in parked.blocks]),
            "goal": f"<= {MAX_RATIO:g} x: nobody else waits",
            "met": ours / floor <= MAX_RATIO,
        }
    )


if __name__ == "__main__":
    main()
