"""The connections of one server: one for everybody, or one for each conversation at a time.

A server of the handshake era does not say which call its question belongs to. Once it has asked, no
two conversations use a connection at the same time: then there is one chat that it can mean.
"""

import asyncio
import dataclasses
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from gateway.domain.tools import ServerState, ServerStatistics
from gateway.ports import Clock
from mcp_host.connection import Connection
from mcp_host.server_config import ServerConfig
from mcp_host.session import Era
from mcp_host.shared import Shared

logger = logging.getLogger(__name__)

SAY_SECONDS: Final = 1.0
"""Most waits are shorter; nobody needs to hear of those."""

IDLE_SECONDS: Final = 300.0
"""How long a connection beside the first is kept for the next call."""

WAITS: Final = (
    "{} works for another chat and may ask there; this chat's call waits until it is done."
)

Tell = Callable[[str], Awaitable[None]]
"""Says something in the chat of a call."""

MakeConnection = Callable[[int], Connection]
"""Makes the connection of that number, which nobody runs yet."""


def config_of_another(config: ServerConfig) -> ServerConfig:
    """Return the entry for a connection beside the first: one that nobody uses soon ends."""
    idle = min(config.idle_timeout_seconds or IDLE_SECONDS, IDLE_SECONDS)
    return config.model_copy(update={"idle_timeout_seconds": idle})


@dataclass(slots=True, eq=False)
class _Line:
    """A connection and how many calls of which conversations are on it; `last` had the latest."""

    connection: Connection
    users: dict[str, int] = field(default_factory=dict[str, int])
    last: str = ""

    def take(self, conversation: str) -> None:
        self.users[conversation] = self.users.get(conversation, 0) + 1
        self.last = conversation

    def give_back(self, conversation: str) -> None:
        left = self.users[conversation] - 1
        if left:
            self.users[conversation] = left
        else:
            del self.users[conversation]

    def only_for(self, conversation: str) -> bool:
        return len(self.users) == 1 and conversation in self.users


@dataclass(slots=True, eq=False)
class _Waiter:
    conversation: str
    line: "asyncio.Future[_Line]"


class Connections:
    """`first` is there as long as the entry; the others come when they are needed, and go.

    `pause` is how many seconds no other is tried after one that could not be had.
    """

    def __init__(
        self, first: Connection, *, shared: Shared, make: MakeConnection, clock: Clock, pause: float
    ) -> None:
        self.first = first
        self.shared = shared
        self._make = make
        self._clock = clock
        self._pause = pause
        self._none_before = float("-inf")
        self._first = _Line(first)
        self._lines = [self._first]
        self._owners: dict[_Line, asyncio.Task[None]] = {}
        self._waiting: list[_Waiter] = []
        self._closed = False

    @property
    def apart(self) -> bool:
        """Whether conversations must not share a connection; alone they do not meet anyway."""
        return (
            self.shared.asks
            and self.first.era is not Era.MODERN
            and not self.first.config.exclusive
        )

    @property
    def statistics(self) -> ServerStatistics:
        """What the server did since its entry was read."""
        shared, times = self.shared, self.shared.times
        states = [line.connection.state for line in self._lines]
        return ServerStatistics(
            calls=times.calls,
            errors=times.errors,
            p50_ms=times.percentile(50),
            p95_ms=times.percentile(95),
            restarts=max(0, self.first.starts - 1),
            elicitation=shared.answers.so_far(),
            sampling=dataclasses.asdict(shared.sampler.count),
            connections=states.count(ServerState.READY),
            most_connections=self.first.config.connection_limit if self.apart else 1,
        )

    async def run(self) -> None:
        """Own all of them until cancelled."""
        try:
            await self.first.run()
        finally:
            self._closed = True
            # Whoever waits is told by the first that it is closed.
            self._serve_waiting()
            await self._end_others()

    async def reconnect(self) -> None:
        """Have the first connect anew, and end the others; returns when that try has ended."""
        await self._end_others()
        await self.first.reconnect()

    @asynccontextmanager
    async def lease(self, conversation: str, *, tell: Tell) -> AsyncGenerator[Connection]:
        """Use a connection inside the block, from before a call is written down until its end.

        Where conversations are kept apart it waits for one that no other uses, and says so.
        """
        line = await self._line(conversation, tell)
        try:
            async with line.connection.turn():
                yield line.connection
        finally:
            self._give_back(line, conversation)

    async def _line(self, conversation: str, tell: Tell) -> _Line:
        came_first = False
        while True:
            line = self._choose(conversation, behind=bool(self._waiting) and not came_first)
            if line is not None:
                line.take(conversation)
            else:
                line = await self._wait(conversation, tell, came_first=came_first)
            try:
                if await self._is_up(line):
                    return line
            except BaseException:
                self._give_back(line, conversation)
                raise
            self._give_back(line, conversation)
            came_first = True

    def _choose(self, conversation: str, *, behind: bool) -> _Line | None:
        """Return what a call of this conversation may use now; `behind` others that wait."""
        if self._closed or not self.apart or self.first.state is ServerState.PARKED:
            return self._first
        for line in self._lines:
            if line.only_for(conversation):
                return line
        if behind:
            return None
        free = [line for line in self._lines if not line.users and not self._is_ending(line)]
        if free:
            return min(free, key=lambda line: self._rank(line, conversation))
        full = len(self._lines) >= self.first.config.connection_limit
        return None if full or self._clock.monotonic() < self._none_before else self._open()

    def _is_ending(self, line: _Line) -> bool:
        """Whether it was up and is no more: its process may take a while to go."""
        connection = line.connection
        return line is not self._first and connection.starts > 0 and not connection.is_live

    def _rank(self, line: _Line, conversation: str) -> tuple[bool, bool, bool]:
        # A question may come late on one whose call was given up; sessions like their own chat.
        return line.connection.awaits_late, line.last != conversation, line is not self._first

    def _open(self) -> _Line:
        numbers = {line.connection.number for line in self._lines}
        number = next(n for n in range(2, len(numbers) + 2) if n not in numbers)
        line = _Line(self._make(number))
        self._lines.append(line)
        name = f"server:{self.first.server}:{number}"
        self._owners[line] = asyncio.create_task(self._own(line), name=name)
        return line

    async def _own(self, line: _Line) -> None:
        try:
            await line.connection.run_once()
        finally:
            self._lines.remove(line)
            del self._owners[line]
            if not line.connection.starts:
                self._none_before = self._clock.monotonic() + self._pause
            self._serve_waiting()

    async def _is_up(self, line: _Line) -> bool:
        if line is self._first:
            return True
        await line.connection.tried()
        if line.connection.is_live:
            return True
        owner = self._owners.get(line)
        if owner is not None:
            # It is ending by itself; what it held is free after that.
            await asyncio.wait({owner})
        return False

    async def _wait(self, conversation: str, tell: Tell, *, came_first: bool) -> _Line:
        waiter = _Waiter(conversation, asyncio.get_running_loop().create_future())
        self._waiting.insert(0 if came_first else len(self._waiting), waiter)
        saying = asyncio.create_task(self._say_it_waits(tell), name=f"waits:{self.first.server}")
        try:
            return await waiter.line
        except asyncio.CancelledError:
            if waiter.line.done() and not waiter.line.cancelled():
                self._give_back(waiter.line.result(), conversation)
            raise
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            saying.cancel()
            await asyncio.wait({saying})

    async def _say_it_waits(self, tell: Tell) -> None:
        await self._clock.sleep(SAY_SECONDS)
        logger.info("server %s: a call waits for another conversation's", self.first.server)
        await tell(WAITS.format(self.first.server))

    def _give_back(self, line: _Line, conversation: str) -> None:
        line.give_back(conversation)
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        """Give those who wait what is free, in the order in which they came."""
        for waiter in tuple(self._waiting):
            line = self._choose(waiter.conversation, behind=False)
            if line is None:
                continue
            self._waiting.remove(waiter)
            if not waiter.line.cancelled():
                line.take(waiter.conversation)
                waiter.line.set_result(line)

    async def _end_others(self) -> None:
        owners = list(self._owners.values())
        for owner in owners:
            owner.cancel()
        if owners:
            await asyncio.wait(owners)
