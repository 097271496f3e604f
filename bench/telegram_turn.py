"""A text turn of the real gateway on Telegram: from the update to the call that sends the reply.

Both ends are the fake Telegram's, the model is a scripted service in a process of its own. Against
it, a bot that is only the platform's library and the model's: what is more is our own cost.
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
from bench.service import Bot, answered, asked_last, bare_bot, bot_with_people, gateway_of, telegram
from tests.fakes.telegram import Town
from tests.support.scripted import model_process

BLOCKS: Final = 5
PEOPLE: Final = 40
"""Each takes one turn of a block, after one to warm up."""
MAX_OWN_MS: Final = 10.0


@dataclass(slots=True, kw_only=True)
class Side:
    """One of those compared; `blocks` are ms, oldest first."""

    bot: Bot
    blocks: list[list[float]] = field(default_factory=list[list[float]])

    async def talk(self, town: Town) -> list[float]:
        """Let everybody take a turn, one after another; return the ms of each."""
        return [await answered(town, chat, TEXT) for chat in self.bot.chats]

    @property
    def all(self) -> list[float]:
        return [ms for block in self.blocks for ms in block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The gateway, the libraries it is made with, and HTTP alone."""

    gateway: Side
    libraries: Side
    http: Side


@asynccontextmanager
async def _sides(folder: Path, *, people: int) -> AsyncGenerator[tuple[Town, Sides]]:
    async with AsyncExitStack() as stack:
        town = await stack.enter_async_context(telegram())
        record = folder / "requests.jsonl"
        url = stack.enter_context(model_process("tests.e2e.obedient", "--record", str(record)))
        sides = Sides(
            gateway=Side(bot=bot_with_people(town, 1, people=people)),
            libraries=Side(bot=bot_with_people(town, 2, people=people)),
            http=Side(bot=bot_with_people(town, 3, people=people)),
        )
        model = {"provider": "openai", "name": "scripted", "base_url": url}
        await stack.enter_async_context(
            gateway_of(town, sides.gateway.bot, folder / "home", model=model)
        )
        # The others ask the model for the same functions, which is most of what its library does.
        await answered(town, sides.gateway.bot.chats[0], TEXT)
        asking = ("--model", url, "--request", asked_last(record))
        await stack.enter_async_context(bare_bot(town, sides.libraries.bot, "--library", *asking))
        await stack.enter_async_context(bare_bot(town, sides.http.bot, *asking))
        yield town, sides


async def measure(*, blocks: int, people: int) -> Sides:
    """Take turns in blocks, the sides one after another, so that they see the same machine."""
    with tempfile.TemporaryDirectory() as folder:
        async with _sides(Path(folder), people=people) as (town, sides):
            every = (sides.gateway, sides.libraries, sides.http)
            for side in every:
                await side.talk(town)
            for _ in range(blocks):
                for side in every:
                    side.blocks.append(await side.talk(town))
            return sides


def main() -> None:
    sides = asyncio.run(measure(blocks=BLOCKS, people=PEOPLE))
    ours, libraries, http = (
        median(side.all) for side in (sides.gateway, sides.libraries, sides.http)
    )
    own = ours - libraries
    emit(
        {
            "name": "telegram_turn",
            "unit": "ms",
            "ours": round(ours, 2),
            "floor": round(libraries, 2),
            "floor_is": "a bot of only python-telegram-bot and the model library, asking the same",
            "ratio": round(ours / libraries, 2),
            "p50_ms": round(ours, 2),
            "p95_ms": round(percentile(sides.gateway.all, 0.95), 2),
            "spread": spread([median(block) for block in sides.gateway.blocks]),
            "goal": "a separate row, no goal",
            "met": None,
        }
    )
    emit(
        {
            "name": "telegram_turn own",
            "unit": "ms",
            "ours": round(own, 2),
            "floor": None,
            "floor_is": "none: the turn less what the libraries alone take for it",
            "ratio": None,
            "p50_ms": round(own, 2),
            "goal": f"p50 <= {MAX_OWN_MS:g} ms from the update to the call that sends",
            "met": own <= MAX_OWN_MS,
        }
    )
    emit(
        {
            "name": "telegram_libraries",
            "unit": "ms",
            "ours": round(libraries, 2),
            "floor": round(http, 2),
            "floor_is": "the same bot by bare httpx",
            "ratio": round(libraries / http, 2),
            "p95_ms": round(percentile(sides.libraries.all, 0.95), 2),
            "spread": spread([median(block) for block in sides.libraries.blocks]),
            "goal": "a separate row, no goal",
            "met": None,
        }
    )


if __name__ == "__main__":
    main()
