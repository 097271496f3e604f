"""From the press of *Allow once* to the start of the tool, through the real gateway on Telegram.

It begins when the fake has the press for the gateway's open poll, and ends in the process of an
MCP server built with the SDK. The floor: a bare poll by httpx and a bare call by the SDK.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.bare_bot import BUTTON, GOT
from bench.report import emit, median, percentile, spread
from bench.service import REST_SECONDS, Bot, bare_bot, bot_with_people, gateway_of, telegram
from tests.fakes.telegram import ChatDriver, Town
from tests.support.chat import ROOT
from tests.support.scripted import model_process

BLOCKS: Final = 5
PRESSES: Final = 12
"""Of one block."""
WARM_UP: Final = 5
MAX_MS: Final = 20.0
SERVER: Final = "box"
"""The name the scripted model knows."""


@dataclass(slots=True, kw_only=True)
class Side:
    """One of those compared; its server writes down in `starts` when it was called."""

    bot: Bot
    starts: Path
    blocks: list[list[float]] = field(default_factory=list[list[float]])
    pressed: int = 0

    @property
    def server(self) -> list[str]:
        return [sys.executable, "-m", "bench.press", "--serve", str(self.starts)]

    @property
    def all(self) -> list[float]:
        return [ms for block in self.blocks for ms in block]

    async def press(self, town: Town, presses: int) -> list[float]:
        """Let people who have not written yet press one button each; return the ms of each."""
        people = self.bot.chats[self.pressed : self.pressed + presses]
        self.pressed += presses
        return [await self._one(town, chat) for chat in people]

    async def _one(self, town: Town, chat: ChatDriver) -> float:
        await chat.say(f'call start {{"text": "{chat.id}"}}')
        card = await chat.wait_for(lambda m: BUTTON in m.labels, what="a card")
        await asyncio.sleep(REST_SECONDS)
        began = town.service.now()
        await chat.press(BUTTON, message=card)
        await chat.wait_for_reply(GOT)
        await asyncio.sleep(REST_SECONDS)
        [at] = [at for person, at in self._started() if person == chat.id]
        return (at - began) * 1000

    @property
    def ran(self) -> list[int]:
        """For whom the tool ran, once for each time."""
        return [person for person, _ in self._started()]

    def _started(self) -> list[tuple[int, float]]:
        lines = self.starts.read_text(encoding="utf-8").splitlines()
        return [(int(person), float(at)) for person, at in map(str.split, lines)]


@asynccontextmanager
async def _sides(folder: Path, *, people: int) -> AsyncGenerator[tuple[Town, Side, Side]]:
    async with AsyncExitStack() as stack:
        town = await stack.enter_async_context(telegram())
        record = folder / "requests.jsonl"
        url = stack.enter_context(model_process("tests.e2e.obedient", "--record", str(record)))
        ours, bare = (
            Side(
                bot=bot_with_people(town, number, people=people), starts=folder / f"starts-{number}"
            )
            for number in (1, 2)
        )
        command, *arguments = ours.server
        server = {
            "command": command,
            "args": arguments,
            "env": {"PYTHONPATH": str(ROOT)},
            "trust": "untrusted",
        }
        await stack.enter_async_context(
            gateway_of(
                town,
                ours.bot,
                folder / "home",
                model={"provider": "openai", "name": "scripted", "base_url": url},
                mcp_servers={SERVER: server},
            )
        )
        await stack.enter_async_context(bare_bot(town, bare.bot, "--server", *bare.server))
        yield town, ours, bare


async def measure(folder: Path, *, blocks: int, presses: int, warm_up: int) -> tuple[Side, Side]:
    """Press in blocks, the gateway's cards and the bare bot's in turns; return both sides."""
    async with _sides(folder, people=warm_up + blocks * presses) as (town, ours, bare):
        for side in (ours, bare):
            await side.press(town, warm_up)
        for _ in range(blocks):
            for side in (ours, bare):
                side.blocks.append(await side.press(town, presses))
        return ours, bare


def serve(starts: Path, now: Callable[[], float] = time.time) -> None:
    """Be the server: its one tool writes down when it started."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench")

    def start(text: str) -> str:
        at = now()
        with starts.open("a", encoding="utf-8") as file:
            file.write(f"{text} {at}\n")
        return "started"

    server.tool()(start)
    server.run()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.press", description=__doc__)
    parser.add_argument("--serve", type=Path, help="be the server, writing its starts to a file")
    starts: Path | None = parser.parse_args().serve
    if starts is not None:
        serve(starts)
        return
    with tempfile.TemporaryDirectory() as folder:
        ours, bare = asyncio.run(
            measure(Path(folder), blocks=BLOCKS, presses=PRESSES, warm_up=WARM_UP)
        )
    ours_ms, bare_ms = median(ours.all), median(bare.all)
    emit(
        {
            "name": "press_to_tool",
            "unit": "ms",
            "ours": round(ours_ms, 2),
            "floor": round(bare_ms, 2),
            "floor_is": "a bare long poll by httpx and a bare stdio tools/call by the SDK",
            "ratio": round(ours_ms / bare_ms, 2),
            "p50_ms": round(ours_ms, 2),
            "p95_ms": round(percentile(ours.all, 0.95), 2),
            "spread": spread([median(block) for block in ours.blocks]),
            "goal": f"p50 <= {MAX_MS:g} ms, one host",
            "met": ours_ms <= MAX_MS,
        }
    )


if __name__ == "__main__":
    main()
