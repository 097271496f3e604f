"""The calls in flight on one connection: their deadline, their questions, and how they end.

A question reaches the call it belongs to or nobody: never another conversation's. Knows no
approvals and no transport.
"""

import asyncio
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

import mcp_types as wire
from mcp import MCPError

from gateway.domain.deadline import Deadline
from gateway.domain.errors import ServerUnavailable, ToolHostError, ToolTimeout
from gateway.ports import Clock
from mcp_host.errors import leaf
from mcp_host.session import ELICIT, Era, HostSession

logger = logging.getLogger(__name__)

MAX_ROUNDS: Final = 10
STATE_ONLY_PAUSE: Final = 0.25

DECLINE: Final = "decline"
CANCEL: Final = "cancel"


class Asker(Protocol):
    """Puts a server's question to the person whose call it is."""

    async def answer(self, params: Mapping[str, object]) -> dict[str, object]:
        """Return the raw result of an `elicitation/create`."""
        ...


class BadAnswer(ToolHostError):
    """The server answered the call with something that is no result; it may have run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The raw result of a call; `notes` is what happened on the way, `seconds` without people's."""

    raw: Mapping[str, object]
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Flight:
    tool: str
    asker: Asker
    deadline: Deadline
    tasks: asyncio.TaskGroup
    clock: Clock
    questions: set[asyncio.Task[dict[str, object]]] = field(
        default_factory=set["asyncio.Task[dict[str, object]]"]
    )
    landed: bool = False
    waited: float = 0.0
    notes: list[str] = field(default_factory=list[str])

    async def ask(self, params: Mapping[str, object]) -> dict[str, object]:
        """Ask in the task that runs; the call's deadline stands still meanwhile."""
        began = self.clock.monotonic()
        try:
            with self.deadline.paused():
                return await self.asker.answer(params)
        finally:
            self.waited += self.clock.monotonic() - began

    async def ask_from_outside(self, params: Mapping[str, object]) -> dict[str, object]:
        """Ask as a part of the call: its end ends the question, and so does our caller's."""
        question = self.tasks.create_task(self.ask(params), name=f"question:{self.tool}")
        self.questions.add(question)
        try:
            await asyncio.wait({question})
        finally:
            question.cancel()
            self.questions.discard(question)
        if question.cancelled() or question.exception() is not None:
            return {"action": CANCEL}
        return question.result()

    def land(self) -> None:
        """Withdraw what the call still asks: it has its answer, or nobody waits for it."""
        self.landed = True
        for question in self.questions:
            question.cancel()


class Calls:
    """Runs calls on a session and gives the questions of a legacy server to the right one."""

    def __init__(self, server: str, *, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._flights: list[_Flight] = []

    async def run(
        self,
        session: HostSession,
        tool: str,
        arguments: Mapping[str, object],
        *,
        asker: Asker,
        seconds: float,
    ) -> Returned:
        """Call the tool and return what it gave, within `seconds` of its own time.

        Raises:
            ToolTimeout: No answer in time; the server was told that nobody waits any more.
            ServerUnavailable: The connection broke; `sent` says whether it may have run.
            MCPError: The server answered with an error.
            BadAnswer: The server answered with nonsense.
        """
        began = self._clock.monotonic()
        deadline = Deadline(seconds)
        try:
            async with deadline, asyncio.TaskGroup() as tasks:
                flight = _Flight(tool, asker, deadline, tasks, self._clock)
                with self._in_flight(flight):
                    raw = await self._rounds(session, tool, arguments, flight)
        except TimeoutError:
            raise ToolTimeout(self._server, tool, seconds) from None
        except BaseExceptionGroup as group:
            # The group holds what the call or one of its questions raised first.
            raise await self._translated(session, leaf(group)) from None
        took = max(0.0, self._clock.monotonic() - began - flight.waited)
        return Returned(raw=raw, seconds=took, notes=tuple(flight.notes))

    async def elicit(self, params: Mapping[str, object], *, late: bool) -> dict[str, object]:
        """Answer a legacy server's question; `late` when it may belong to a call that is over."""
        flights = [flight for flight in self._flights if not flight.landed]
        if len(flights) == 1 and not late:
            return await flights[0].ask_from_outside(params)
        calls = "no call" if not flights else f"{len(flights)} calls"
        over = " and one that was given up" if late and flights else ""
        why = f"it asked for input while {calls}{over} ran, so it is unclear whom to ask: declined"
        logger.warning("server %s: %s", self._server, why)
        for flight in flights:
            flight.notes.append(f"The server {self._server} was not answered: {why}.")
        return {"action": DECLINE}

    @contextmanager
    def _in_flight(self, flight: _Flight) -> Generator[None]:
        self._flights.append(flight)
        try:
            yield
        finally:
            self._flights.remove(flight)
            flight.land()

    async def _rounds(
        self,
        session: HostSession,
        tool: str,
        arguments: Mapping[str, object],
        flight: _Flight,
    ) -> Mapping[str, object]:
        call = {"name": tool, "arguments": arguments}
        raw = await session.request("tools/call", call)
        rounds = 0
        while session.era is Era.MODERN and raw.get("resultType") != "complete":
            rounds += 1
            if raw.get("resultType") != "input_required" or rounds > MAX_ROUNDS:
                raise BadAnswer(self._server, _why_bad(raw, tool))
            answers = await self._answers(raw, tool, flight)
            try:
                raw = await session.request("tools/call", {**call, **answers})
            except ServerUnavailable as error:
                # An earlier round did reach the server.
                raise ServerUnavailable(self._server, error.problem, sent=True) from error
        return raw

    async def _answers(
        self, raw: Mapping[str, object], tool: str, flight: _Flight
    ) -> dict[str, object]:
        """Return what the next round carries: people's answers, and the server's own state."""
        requests = raw.get("inputRequests")
        state = raw.get("requestState")
        answers: dict[str, object] = {}
        if isinstance(state, str):
            answers["requestState"] = state
        if isinstance(requests, dict) and requests:
            responses: dict[str, object] = {}
            for key, request in cast("dict[str, object]", requests).items():
                responses[key] = await self._answer(request, tool, flight)
            answers["inputResponses"] = responses
        elif answers:
            await self._clock.sleep(STATE_ONLY_PAUSE)
        else:
            raise BadAnswer(self._server, f"{tool} asked for input without saying which")
        return answers

    async def _answer(self, request: object, tool: str, flight: _Flight) -> dict[str, object]:
        fields = cast("dict[str, object]", request) if isinstance(request, dict) else {}
        params = fields.get("params")
        if fields.get("method") != ELICIT or not isinstance(params, dict):
            asked = f"asked for {fields.get('method')!r}, which is not offered"
            raise BadAnswer(self._server, f"{tool} {asked}")
        return await flight.ask(cast("dict[str, object]", params))

    async def _translated(self, session: HostSession, error: BaseException) -> BaseException:
        if isinstance(error, MCPError) and error.code == wire.CONNECTION_CLOSED and session.closed:
            return ServerUnavailable(self._server, await session.why_closed(), sent=True)
        return error


def _why_bad(raw: Mapping[str, object], tool: str) -> str:
    if raw.get("resultType") == "input_required":
        return f"{tool} asked for input more than {MAX_ROUNDS} times"
    return f"{tool} gave a result of the unknown type {raw.get('resultType')!r}"
