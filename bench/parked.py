"""What a chat that must wait 1000 s costs the others: a turn on Telegram beside it, and without it.

Two gateways take turns in blocks on the fake Telegram. One has a chat that Telegram wants to hear nothing
of, whose person goes on writing; the other has not, and is the floor.
"""

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.chats import TEXT
from bench.report import emit, median, percentile, spread
from bench.service import Bot, bot_with_people, gateway_of, telegram
from bench.telegram_turn import Side
from tests.fakes.telegram import ChatDriver, Town, flood
from tests.support.scripted import model_process

BLOCKS: Final = 6
PEOPLE: Final = 30
"""Each takes one turn of a block, after one to warm up."""
PENALTY_SECONDS: Final = 1_000
WAITING: Final = 20
"""What the person of the parked chat writes before each block; it is not answered."""
MAX_RATIO: Final = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A gateway whose `first` chat waits, or says nothing; the others take turns."""

    first: ChatDriver
    side: Side


@asynccontextmanager
async def _gateways(
    folder: Path, *, people: int
) -> AsyncGenerator[tuple[Town, Measured, Measured]]:
    async with AsyncExitStack() as stack:
        town = await stack.enter_async_context(telegram())
        record = folder / "requests.jsonl"
        url = stack.enter_context(model_process("tests.e2e.obedient", "--record", str(record)))
        model = {"provider": "openai", "name": "scripted", "base_url": url}
        bots = [bot_with_people(town, number, people=people + 1) for number in (1, 2)]
        for number, bot in enumerate(bots):
            home = folder / f"home{number}"
            await stack.enter_async_context(gateway_of(town, bot, home, model=model))
        parked, free = (
            Measured(first=bot.chats[0], side=Side(bot=Bot(driver=bot.driver, chats=bot.chats[1:])))
            for bot in bots
        )
        yield town, parked, free


async def _park(town: Town, chat: ChatDriver) -> None:
    town.fail(flood("sendMessage", PENALTY_SECONDS, chat=chat.id))
    await chat.say(TEXT)
    await town.until(lambda: refused(town, chat), what="the refusal")


def refused(town: Town, chat: ChatDriver) -> int:
    """Return how often a send to a chat was refused: more than once, and it was not left alone."""
    return town.count("sendMessage", chat=chat.id, ok=False)


async def measure(*, blocks: int, people: int) -> tuple[Measured, Measured, int]:
    """Return the gateway with a parked chat, the one without, and the sends that were refused."""
    with tempfile.TemporaryDirectory() as folder:
        async with _gateways(Path(folder), people=people) as (town, parked, free):
            for gateway in (parked, free):
                await gateway.side.talk(town)
            await _park(town, parked.first)
            for _ in range(blocks):
                for _ in range(WAITING):
                    await parked.first.say(TEXT)
                for gateway in (parked, free):
                    gateway.side.blocks.append(await gateway.side.talk(town))
            return parked, free, refused(town, parked.first)


def main() -> None:
    parked, free, tries = asyncio.run(measure(blocks=BLOCKS, people=PEOPLE))
    assert tries == 1, "the parked chat was not left alone"
    ours, floor = median(parked.side.all), median(free.side.all)
    emit(
        {
            "name": "parked",
            "unit": "ms",
            "ours": round(ours, 2),
            "floor": round(floor, 2),
            "floor_is": "the same gateway with no chat that must wait",
            "ratio": round(ours / floor, 3),
            "p50_ms": round(ours, 2),
            "p95_ms": round(percentile(parked.side.all, 0.95), 2),
            "spread": spread([median(block) for block in parked.side.blocks]),
            "goal": f"<= {MAX_RATIO:g} x: nobody else waits",
            "met": ours / floor <= MAX_RATIO,
        }
    )


if __name__ == "__main__":
    main()
