"""The calls in flight on one connection: their deadline, their questions, and how they end.

A question reaches the call it belongs to or nobody: never another conversation's. Knows no
approvals and no transport.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

import mcp_types as wire
from mcp import MCPError

from gateway.domain.deadline import Deadline
from gateway.domain.errors import ServerUnavailable, ToolHostError, ToolTimeout
from gateway.ports import Approval, Clock
from mcp_host.errors import leaf
from mcp_host.sampler import Sampler, SamplingCall
from mcp_host.sampling import SAMPLE, SamplingRefused
from mcp_host.session import ELICIT, Era, HostSession
from mcp_host.statistics import AnswerCount

logger = logging.getLogger(__name__)

Ask = Callable[[str, Mapping[str, object]], Awaitable[Mapping[str, object]]]
"""Sends one request by its method and parameters; the server may ask a person meanwhile."""

Exchange = Callable[[Ask, str, Mapping[str, object]], Awaitable[Mapping[str, object]]]
"""Asks what a call of a tool with these arguments takes; returns a raw result of `tools/call`."""

MAX_ROUNDS: Final = 10
STATE_ONLY_PAUSE: Final = 0.25

DECLINE: Final = "decline"
CANCEL: Final = "cancel"


class Asker(Protocol):
    """Puts a server's question to the person whose call it is."""

    async def answer(self, params: Mapping[str, object]) -> dict[str, object]:
        """Return the raw result of an `elicitation/create`."""
        ...

    async def may_sample(self, excerpt: str) -> Approval:
        """Ask whether the server may use our model."""
        ...

    async def tell(self, text: str) -> None:
        """Say something about the call where it was made."""
        ...


class BadAnswer(ToolHostError):
    """The server answered the call with something that is no result; it may have run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The raw result of a call; `notes` is what happened on the way, `seconds` without people's."""

    raw: Mapping[str, object]
    seconds: float
    notes: tuple[str, ...] = ()


async def call_tool(ask: Ask, tool: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
    """Call a tool of the server itself."""
    return await ask("tools/call", {"name": tool, "arguments": arguments})


@dataclass(slots=True)
class _Flight:
    tool: str
    conversation: str
    asker: Asker
    deadline: Deadline
    tasks: asyncio.TaskGroup
    clock: Clock
    sampler: Sampler
    counts: AnswerCount
    sampling: SamplingCall = field(init=False)
    questions: set[asyncio.Task[dict[str, object]]] = field(
        default_factory=set["asyncio.Task[dict[str, object]]"]
    )
    landed: bool = False
    waited: float = 0.0
    notes: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.sampling = SamplingCall(self)

    async def ask(self, params: Mapping[str, object]) -> dict[str, object]:
        """Ask in the task that runs; the call's deadline stands still meanwhile."""
        began = self.clock.monotonic()
        try:
            with self.deadline.paused(), self.counts.one() as told:
                answer = await self.asker.answer(params)
                told.action = answer.get("action")
                return answer
        finally:
            self.waited += self.clock.monotonic() - began

    async def may_sample(self, excerpt: str) -> Approval:
        """Ask a person, for the request of the call that is under way; the deadline stands still."""
        with self.deadline.paused():
            return await self.asker.may_sample(excerpt)

    async def sample(self, params: Mapping[str, object]) -> dict[str, object]:
        """Have our model answer in the task that runs; raises `SamplingRefused`."""
        began = self.clock.monotonic()
        try:
            return await self.sampler.answer(params, self.sampling)
        finally:
            self.waited += self.clock.monotonic() - began

    async def ask_from_outside(self, params: Mapping[str, object]) -> dict[str, object] | None:
        """Ask as a part of the call: our caller's end ends the question, and its own, with None."""
        return await self._from_outside(self.ask(params))

    async def sample_from_outside(self, params: Mapping[str, object]) -> dict[str, object]:
        """Have our model answer as a part of the call.

        Raises:
            SamplingRefused: With what the server may know.
        """
        refusals: list[SamplingRefused] = []

        async def sample() -> dict[str, object]:
            try:
                return await self.sample(params)
            except SamplingRefused as refused:
                # Out of its task it would end the call.
                refusals.append(refused)
                return {}

        answer = await self._from_outside(sample())
        if refusals:
            self.notes.append(_no_answer(self.sampler.server, refusals[0]))
            raise refusals[0]
        if answer is None:
            raise SamplingRefused("the call that wanted it is over")
        return answer

    async def _from_outside(
        self, asking: Coroutine[Any, Any, dict[str, object]]
    ) -> dict[str, object] | None:
        question = self.tasks.create_task(asking, name=f"question:{self.tool}")
        self.questions.add(question)
        try:
            await asyncio.wait({question})
        finally:
            question.cancel()
            self.questions.discard(question)
        if question.cancelled() or question.exception() is not None:
            return None
        return question.result()

    def land(self) -> None:
        """Withdraw what the call still asks: it has its answer, or nobody waits for it."""
        self.landed = True
        for question in self.questions:
            question.cancel()


class Calls:
    """Runs calls on a session and gives the questions of a legacy server to the right one."""

    def __init__(self, server: str, *, clock: Clock, sampler: Sampler, counts: AnswerCount) -> None:
        self._server = server
        self._sampler = sampler
        self._clock = clock
        self._flights: list[_Flight] = []
        self.counts = counts

    async def run(
        self,
        session: HostSession,
        tool: str,
        arguments: Mapping[str, object],
        *,
        asker: Asker,
        seconds: float,
        conversation: str = "",
        exchange: Exchange = call_tool,
    ) -> Returned:
        """Call the tool and return what it gave, within `seconds` of its own time.

        Calls of one `conversation` are asked in the same chat; "" is nobody else's.

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
                flight = _Flight(
                    tool,
                    conversation,
                    asker,
                    deadline,
                    tasks,
                    self._clock,
                    self._sampler,
                    self.counts,
                )

                async def ask(method: str, params: Mapping[str, object]) -> Mapping[str, object]:
                    return await self._rounds(session, method, params, flight)

                with self._in_flight(flight):
                    raw = await exchange(ask, tool, arguments)
        except TimeoutError:
            raise ToolTimeout(self._server, tool, seconds) from None
        except BaseExceptionGroup as group:
            # The group holds what the call or one of its questions raised first.
            raise await self._translated(session, leaf(group)) from None
        took = max(0.0, self._clock.monotonic() - began - flight.waited)
        return Returned(raw=raw, seconds=took, notes=tuple(flight.notes))

    async def elicit(self, params: Mapping[str, object], *, late: bool) -> dict[str, object]:
        """Answer a legacy server's question; `late` when it may belong to a call that is over.

        Calls of one conversation have one chat: it is asked there, whichever of them it is for.
        """
        flights = self._flying()
        if late or not _of_one_chat(flights):
            return await self._decline(flights, late=late)
        while flights:
            with self._standing_still(flights[:-1]):
                answer = await flights[-1].ask_from_outside(params)
            if answer is not None:
                return answer
            # The call it was asked in is over: it is another's, if there is one.
            flights = [flight for flight in flights[:-1] if not flight.landed]
        return {"action": CANCEL}

    async def sample(self, params: Mapping[str, object], *, late: bool) -> dict[str, object]:
        """Have our model answer a legacy server; whose call it is matters when a person is asked.

        Raises:
            SamplingRefused: With what the server may know.
        """
        flights = self._flying()
        if len(flights) == 1 and not late:
            return await flights[0].sample_from_outside(params)
        try:
            return await self._sampler.answer(params)
        except SamplingRefused as refused:
            for flight in flights:
                flight.notes.append(_no_answer(self._server, refused))
            raise

    def _flying(self) -> list[_Flight]:
        return [flight for flight in self._flights if not flight.landed]

    async def _decline(self, flights: list[_Flight], *, late: bool) -> dict[str, object]:
        """Decline what may be anybody's, and say so in each chat; the question is in none."""
        calls = "no call" if not flights else f"{len(flights)} calls"
        over = " and one that was given up" if late and flights else ""
        why = f"it asked for input while {calls}{over} ran, so it is unclear whom to ask: declined"
        logger.warning("server %s: %s", self._server, why)
        with self.counts.one() as told:
            told.action = DECLINE
        said = f"The server {self._server} was not answered: {why}."
        for flight in flights:
            flight.notes.append(said)
            await flight.asker.tell(said)
        return {"action": DECLINE}

    @contextmanager
    def _standing_still(self, flights: list[_Flight]) -> Generator[None]:
        """Stop the clocks of calls of which one may wait for the person."""
        with ExitStack() as clocks:
            for flight in flights:
                clocks.enter_context(flight.deadline.paused())
            yield

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
        method: str,
        params: Mapping[str, object],
        flight: _Flight,
    ) -> Mapping[str, object]:
        tool = flight.tool
        raw = await session.request(method, params, may_ask=True)
        rounds = 0
        while session.era is Era.MODERN and raw.get("resultType") != "complete":
            rounds += 1
            if raw.get("resultType") != "input_required" or rounds > MAX_ROUNDS:
                raise BadAnswer(self._server, _why_bad(raw, tool))
            answers = await self._answers(raw, tool, flight)
            try:
                raw = await session.request(method, {**params, **answers}, may_ask=True)
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
        method, params = fields.get("method"), fields.get("params")
        if isinstance(params, dict):
            given = cast("dict[str, object]", params)
            if method == ELICIT:
                return await flight.ask(given)
            if method == SAMPLE and self._sampler.offered:
                return await self._sampled(given, tool, flight)
        raise BadAnswer(self._server, f"{tool} asked for {method!r}, which is not offered")

    async def _sampled(
        self, params: Mapping[str, object], tool: str, flight: _Flight
    ) -> dict[str, object]:
        try:
            return await flight.sample(params)
        except SamplingRefused as refused:
            # A round has no place for an error: the call ends here, and the server is not told.
            problem = f"{tool} wanted an answer of the model: {refused.why}"
            raise BadAnswer(self._server, problem) from None

    async def _translated(self, session: HostSession, error: BaseException) -> BaseException:
        if isinstance(error, MCPError) and error.code == wire.CONNECTION_CLOSED and session.closed:
            return ServerUnavailable(self._server, await session.why_closed(), sent=True)
        return error


def _of_one_chat(flights: list[_Flight]) -> bool:
    if len(flights) < 2:
        return bool(flights)
    return len({flight.conversation for flight in flights}) == 1 and bool(flights[0].conversation)


def _no_answer(server: str, refused: SamplingRefused) -> str:
    return f"The server {server} was given no answer of the model: {refused.why}."


def _why_bad(raw: Mapping[str, object], tool: str) -> str:
    if raw.get("resultType") == "input_required":
        return f"{tool} asked for input more than {MAX_ROUNDS} times"
    return f"{tool} gave a result of the unknown type {raw.get('resultType')!r}"
