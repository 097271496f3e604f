"""Connects to a server again and again while it is killed, changed, reconnected and asked by two chats.

Counted: cycles by what ended the connection, and what was left of any: a process, a grandchild that
ignores SIGTERM, descriptors, memory. Run as `python -m tests.soak.connections --kills N [--seed N]`.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Final

from gateway.domain.tools import CallState, ServerState
from mcp_host.server_config import ServerConfig
from tests.mcp_host.hosting import Person, Running, arguments, is_alive, legacy, lines_of, running
from tests.soak.command import announced, dice_of, parser, tell
from tests.soak.footprint import children_of, footprint
from tests.support.eventually import eventually_async

WARM: Final = 10
"""Cycles before the process counts as fresh: libraries load and pools fill in the first ones."""


class Cycles:
    """One host and its one server; `pids` are all processes that were ever started for it."""

    def __init__(self, host: Running, folder: Path, dice: Random) -> None:
        self._host = host
        self._folder = folder
        self._dice = dice
        self._changes = 0
        self.pids: set[int] = set()

    async def one(self) -> str:
        """End the connection in some way, have another, and use it; returns the way."""
        await self._ready()
        ways = (self._kill, self._reconnect, self._change, self._kill_one_of_two)
        way = self._dice.choice(ways)
        await way()
        await self._ready()
        return way.__name__.removeprefix("_").replace("_", " ")

    async def _ready(self) -> None:
        if self._host.status().state is not ServerState.READY:
            await self._host.host.reload("s")
        self._note()
        result = await self._host.call("echo", "x")
        if result.text != "x":
            raise AssertionError(f"the server does not work: {result.text}")

    async def _kill(self) -> None:
        for pid in self._alive():
            os.kill(pid, signal.SIGKILL)
        await eventually_async(lambda: self._host.status().state is not ServerState.READY)

    async def _reconnect(self) -> None:
        await self._host.host.reload("s")

    async def _change(self) -> None:
        self._changes += 1
        self._host.wanted["s"] = entry(self._folder, stubborn=self._changes % 3 == 0)
        await self._host.host.reload()
        await self.ask()

    async def ask(self) -> None:
        """Let the server ask where only one chat can be meant: from then on it is known to ask."""
        await self._host.call("order", person=Person(arguments("")))

    async def _kill_one_of_two(self) -> None:
        people = {chat: Person(arguments("")) for chat in ("1", "2")}
        calls: list[asyncio.Task[Any]] = []
        for chat, person in people.items():
            person.decides.clear()
            calls.append(asyncio.create_task(self._host.call("order", chat=chat, person=person)))
        for person in people.values():
            await person.asked.wait()
        self._note()
        os.kill(self._alive()[-1], signal.SIGKILL)
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        for person in people.values():
            person.decides.set()
        states = {(await call).state for call in calls}
        if states != {CallState.OK, CallState.UNKNOWN}:
            raise AssertionError(f"two calls of which one lost its server ended as {states}")

    def _alive(self) -> list[int]:
        """The processes of the server that run, in the order of their starts."""
        return [pid for pid in map(int, lines_of(self._folder / "starts")) if is_alive(pid)]

    def _note(self) -> None:
        for pid in self._alive():
            self.pids.update((pid, *children_of(pid)))


def entry(folder: Path, *, stubborn: bool) -> ServerConfig:
    """An entry of a server that may leave a child which ignores SIGTERM, and holds its output open."""
    child = ("--child", folder / "child") if stubborn else ()
    return legacy("--starts", folder / "starts", *child, max_connections=2)


async def cycled(cycles: int, *, seed: int, folder: Path) -> dict[str, Any]:
    """Return what so many cycles came to."""
    ended: Counter[str] = Counter()
    problems: list[str] = []
    async with running(entry(folder, stubborn=True)) as host:
        all_ = Cycles(host, folder, dice_of(seed))
        await all_.ask()
        fresh = footprint(os.getpid())
        for number in range(cycles):
            if number == WARM:
                fresh = footprint(os.getpid())
            ended[await all_.one()] += 1
        await host.host.reload("s")
        problems += footprint(os.getpid()).beyond(fresh)
    try:
        await eventually_async(lambda: not any(map(is_alive, all_.pids)), seconds=10)
    except AssertionError:
        problems.append(f"still there: {sorted(filter(is_alive, all_.pids))}")
    return {
        "name": "connections",
        "seed": seed,
        "cycles": dict(ended),
        "processes": len(all_.pids),
        "problems": problems,
    }


def main() -> int:
    options = parser(__doc__, kills=200).parse_args()
    seed = announced(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(cycled(options.kills, seed=seed, folder=Path(folder)))
    return tell(report, histogram="cycles", path=options.json)


if __name__ == "__main__":
    sys.exit(main())
