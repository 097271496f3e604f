"""What the gateway takes while nothing happens, against a script that connects the same libraries.

Three gateways, each with one thing more: Telegram alone, an MCP server, a model that was used once.
All of them and their floors are connected first, and then watched over the same time.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.chats import TEXT
from bench.processes import memory_of, seconds_of
from bench.report import emit
from bench.service import Bot, answered, bare_bot, bot_with_people, gateway_of, telegram
from tests.fakes.telegram import Town
from tests.support.chat import ROOT
from tests.support.scripted import model_process

SETTLE_SECONDS: Final = 8.0
WATCH_SECONDS: Final = 30.0
MAX_RATIO: Final = 1.15
MAX_ADDED_CPU: Final = 0.3
"""Percent of one core."""
LIBRARIES: Final = (
    "typer",
    "pydantic",
    "ruamel.yaml",
    "aiosqlite",
    "starlette.applications",
    "starlette.routing",
    "uvicorn",
    "telegramify_markdown",
)
"""What the gateway is made with, besides the platform's library, the MCP SDK and the model's."""
REQUEST: Final = '{"model": "scripted", "messages": []}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a process takes: memory in MiB, the processor in percent of one core."""

    memory: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One of the gateways that are watched."""

    name: str
    server: bool = False
    model: bool = False


KINDS: Final = (
    Kind(name="idle_gateway"),
    Kind(name="idle_gateway +server", server=True),
    Kind(name="idle_gateway +model", server=True, model=True),
)
BARE_BOT: Final = "idle_gateway platform"
"""The first gateway again, against a bot that loads nothing but the platform's library."""


async def watched(pids: dict[str, int], *, seconds: float) -> dict[str, Use]:
    """Return what each process takes in that time."""
    began, before = time.monotonic(), {name: seconds_of(pid) for name, pid in pids.items()}
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    return {
        name: Use(memory=memory_of(pid), cpu=(seconds_of(pid) - before[name]) / took * 100)
        for name, pid in pids.items()
    }


@asynccontextmanager
async def connected(
    town: Town, folder: Path, model: str, kind: Kind, number: int
) -> AsyncGenerator[tuple[int, int]]:
    """Run a gateway of that kind and its floor; the values are their process ids."""
    ours, floor = (bot_with_people(town, 2 * number + n, people=1) for n in (1, 2))
    command = [sys.executable, "-m", "bench.host_call", "--serve", "sdk"]
    options = ["--library", "--load", ",".join(LIBRARIES)]
    sections: dict[str, Any] = {}
    if kind.model:
        sections["model"] = {"provider": "openai", "name": "scripted", "base_url": model}
        options += ["--model", model, "--request", REQUEST]
    if kind.server:
        entry = {"command": command[0], "args": command[1:], "env": {"PYTHONPATH": str(ROOT)}}
        sections["mcp_servers"] = {"bench": entry}
        options += ["--server", *command]
    async with (
        gateway_of(town, ours, folder / f"home-{number}", **sections) as gateway,
        bare_bot(town, floor, *options) as bare,
    ):
        if kind.model:
            await answered(town, ours.chats[0], TEXT)
        yield gateway.pid, bare


async def measure(
    kinds: Sequence[Kind], *, settle: float, seconds: float
) -> dict[str, tuple[Use, Use]]:
    """Return what each gateway takes, and its floor; the first one against the bare bot too."""
    pids: dict[str, int] = {}
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        town = await stack.enter_async_context(telegram())
        record = folder / "requests.jsonl"
        model = stack.enter_context(model_process("tests.e2e.obedient", "--record", str(record)))
        for number, kind in enumerate(kinds):
            pair = await stack.enter_async_context(connected(town, folder, model, kind, number))
            pids[kind.name], pids[f"floor of {kind.name}"] = pair
        alone: Bot = bot_with_people(town, 2 * len(kinds) + 1, people=1)
        pids[BARE_BOT] = await stack.enter_async_context(bare_bot(town, alone, "--library"))
        await asyncio.sleep(settle)
        found = await watched(pids, seconds=seconds)
    pairs = {kind.name: (found[kind.name], found[f"floor of {kind.name}"]) for kind in kinds}
    return {**pairs, BARE_BOT: (found[kinds[0].name], found[BARE_BOT])}


def _tell(name: str, ours: Use, floor: Use) -> None:
    scored = name != BARE_BOT
    ratio = ours.memory / floor.memory
    emit(
        {
            "name": name,
            "unit": "MiB RSS",
            "ours": round(ours.memory, 1),
            "floor": round(floor.memory, 1),
            "floor_is": "a polling bot that loads the same libraries"
            if scored
            else "a polling bot that loads python-telegram-bot alone",
            "ratio": round(ratio, 2),
            "goal": f"<= {MAX_RATIO} x" if scored else "a separate row, no goal",
            "met": ratio <= MAX_RATIO if scored else None,
        }
    )
    if scored:
        emit(
            {
                "name": name.replace("idle_gateway", "idle_cpu"),
                "unit": "% of a core",
                "ours": round(ours.cpu, 2),
                "floor": round(floor.cpu, 2),
                "floor_is": "the same bot",
                "ratio": None,
                "goal": f"<= floor + {MAX_ADDED_CPU} %",
                "met": ours.cpu - floor.cpu <= MAX_ADDED_CPU,
            }
        )


def main() -> None:
    found = asyncio.run(measure(KINDS, settle=SETTLE_SECONDS, seconds=WATCH_SECONDS))
    for name, (ours, floor) in found.items():
        _tell(name, ours, floor)


if __name__ == "__main__":
    main()
