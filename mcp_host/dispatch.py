"""The one way to a tool: find, gate, ask, write down, call, clean. There is no other.

Everything that goes wrong is a result; only `Fenced` and cancellation pass through.
"""

import dataclasses
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, assert_never, cast

import mcp_types as wire
from mcp import MCPError

from gateway.domain.canonical import NotCanonical, parse_json
from gateway.domain.errors import (
    Fenced,
    GatewayError,
    ServerUnavailable,
    ToolHostError,
    ToolTimeout,
)
from gateway.domain.question import Decision
from gateway.domain.tools import CallState, ServerState, ToolCall, ToolResult, ToolSpec
from gateway.ports import Approval, Approver
from mcp_host.asking import PersonAsker
from mcp_host.calls import Returned, call_tool
from mcp_host.connection import Connection
from mcp_host.connections import Connections
from mcp_host.errors import one_line
from mcp_host.needed_links import ask_for_links
from mcp_host.results import read_result
from mcp_host.sanitize import clean_line, clean_text
from mcp_host.secrets import without_secrets
from mcp_host.server_config import ServerConfig, UrlMode
from mcp_host.session import HostSession
from mcp_host.trust import Gate, gate
from mcp_host.utilities import use

logger = logging.getLogger(__name__)

_UNASKED: Final = Approval(allowed=True)


class _NotRun(Exception):
    """The call ends here and nothing has run; the text says why."""

    def __init__(
        self, why: str, *, state: CallState = CallState.REFUSED, decision: Decision | None = None
    ) -> None:
        super().__init__(why)
        self.why = why
        self.state = state
        self.decision = decision


@dataclass(slots=True, kw_only=True)
class _Way:
    """How far a call has come; `out`: it may have reached its server."""

    spec: ToolSpec | None = None
    approval: Approval = _UNASKED
    out: bool = False


@dataclass(slots=True)
class _Line:
    """What a call holds of its server until it ends, and who is asked in it."""

    conversation: str
    approver: Approver
    held: AsyncExitStack
    connection: Connection | None = None

    @property
    def is_over(self) -> bool:
        """True when its connection has ended for good: the server may have another."""
        return self.connection is not None and self.connection.state is ServerState.CLOSED


class Dispatch:
    """Runs calls on the connections; `find` and `config` see the tools as they are now.

    `connect` gives the connections of a server and wakes one that sleeps, but does not wait for it.
    `tokens` are those that were sent to a server lately.
    """

    def __init__(
        self,
        *,
        find: Callable[[str], ToolSpec | None],
        config: Callable[[str], ServerConfig | None],
        connect: Callable[[str], Awaitable[Connections | None]],
        tokens: Callable[[str], frozenset[str]],
    ) -> None:
        self._find = find
        self._config = config
        self._connect = connect
        self._tokens = tokens

    async def call(self, call: ToolCall, approver: Approver) -> ToolResult:
        """Run one call through filter, gate, transport and sanitiser."""
        way = _Way()
        try:
            way.spec, way.approval = await self._approved(call, approver)
            connections = await self._connect(way.spec.server)
            if connections is None:
                raise _NotRun(_GONE.format(way.spec.alias), state=CallState.ERROR)
            async with AsyncExitStack() as held:
                result = await self._run(call, way.spec, way, approver, held)
            connections.shared.times.add(ok=result.state is CallState.OK, ms=result.ms)
            # A server may say again what its entry keeps secret, or what we have sent to it.
            sent = self._tokens(way.spec.server)
            return without_secrets(result, connections.first.config, tokens=sent)
        except _NotRun as stop:
            return ToolResult(call=call.id, state=stop.state, text=stop.why, decision=stop.decision)
        except Fenced:
            raise
        except Exception:
            # Whoever called goes on with a result, and fails closed: what broke allows nothing.
            logger.exception("the call of %s broke", call.alias)
            return _broken(call, way)

    async def _run(
        self, call: ToolCall, spec: ToolSpec, way: _Way, approver: Approver, held: AsyncExitStack
    ) -> ToolResult:
        line = _Line(call.place.session_key, approver, held)
        spec, arguments = await self._started(spec, way.approval, line)
        way.out = True
        try:
            returned = await self._send(spec, arguments, line)
        except (ToolHostError, MCPError) as error:
            result = _failed(call, spec, error)
        else:
            ms = round(returned.seconds * 1000)
            result = read_result(returned.raw, call=call.id, ms=ms, notes=returned.notes)
        return dataclasses.replace(result, decision=way.approval.decision)

    async def _approved(self, call: ToolCall, approver: Approver) -> tuple[ToolSpec, Approval]:
        """Find the tool and ask who must be asked; touches no transport."""
        spec = self._find(call.alias)
        if spec is None:
            why = f"There is no tool {clean_line(call.alias, limit=100)}. Nothing was called."
            raise _NotRun(why, state=CallState.ERROR)
        verdict = self._gate(spec)
        match verdict:
            case Gate.DENY:
                raise _NotRun(_DENIED.format(spec.alias))
            case Gate.ALLOW:
                return spec, _UNASKED
            case Gate.ASK:
                return spec, await self._ask(spec, approver)
            case _:
                assert_never(verdict)

    async def _ask(self, spec: ToolSpec, approver: Approver) -> Approval:
        try:
            approval = await approver.approve(spec)
        except Fenced:
            raise
        except GatewayError as error:
            logger.warning("asking for %s failed: %s", spec.alias, error)
            raise _NotRun(_no_answer(spec, error)) from error
        if not approval.allowed:
            why = approval.reason.removeprefix("not run: ") or "it was not allowed"
            raise _NotRun(f"{spec.alias} was not run: {why}.", decision=approval.decision)
        # The wait may have been long: what was shown must still be what is there.
        if not self._is_current(spec) or self._gate(spec) is Gate.DENY:
            why = f"{spec.alias} was not run: the tool changed while it waited for approval."
            raise _NotRun(why, decision=approval.decision)
        return approval

    async def _started(
        self, spec: ToolSpec, approval: Approval, line: _Line
    ) -> tuple[ToolSpec, Mapping[str, object]]:
        """Get the server ready, then write down that the call goes out; return what must run."""
        decision = approval.decision
        try:
            # First the server, so that a call is written down as out only when it can go out.
            await self._session(spec, line)
            spec = self._as_listed_now(spec, approval)
        except ToolHostError as error:
            raise _NotRun(f"{error}.", state=CallState.ERROR, decision=decision) from error
        try:
            text = await line.approver.started(approval.question)
            arguments = parse_json(text)
        except Fenced:
            raise
        except NotCanonical as error:
            raise _NotRun(f"{spec.alias} was not run: {error}.", decision=decision) from error
        except GatewayError as error:
            raise _NotRun(_no_answer(spec, error), decision=decision) from error
        if not isinstance(arguments, dict):
            why = f"{spec.alias} was not run: its arguments must be a JSON object."
            raise _NotRun(why, state=CallState.ERROR, decision=decision)
        return spec, cast("dict[str, object]", arguments)

    def _as_listed_now(self, spec: ToolSpec, approval: Approval) -> ToolSpec:
        """Return the tool as its server, which may have been away, describes it by now."""
        now = self._find(spec.alias)
        if now is None or (now.server, now.name) != (spec.server, spec.name):
            raise _gone(spec)
        unchanged = (now.definition_sha, now.server_sha) == (spec.definition_sha, spec.server_sha)
        # Nobody was shown what it was, when it needs no approval before and after.
        if unchanged or (approval is _UNASKED and self._gate(now) is Gate.ALLOW):
            return now
        raise _gone(spec)

    async def _send(self, spec: ToolSpec, arguments: Mapping[str, object], line: _Line) -> Returned:
        """Call, and once more when nothing can have run or the tool may simply run again."""
        try:
            return await self._send_once(spec, arguments, line)
        except ServerUnavailable as error:
            if error.sent and not spec.repeatable:
                raise
            logger.info("server %s: %s is called again: %s", spec.server, spec.name, error.problem)
        return await self._send_once(spec, arguments, line)

    async def _send_once(
        self, spec: ToolSpec, arguments: Mapping[str, object], line: _Line
    ) -> Returned:
        connection, session = await self._session(spec, line)
        config = connection.config
        asker = PersonAsker(spec, config=config.elicitation, approver=line.approver)
        try:
            returned = await connection.calls.run(
                session,
                spec.name,
                arguments,
                asker=asker,
                seconds=config.timeout,
                conversation=line.conversation,
                exchange=use if spec.utility else call_tool,
            )
        except MCPError as error:
            asks = config.elicitation.enabled and config.elicitation.url is UrlMode.ASK
            if error.code != wire.URL_ELICITATION_REQUIRED or not asks:
                raise
            counts = connection.calls.counts
            returned = await ask_for_links(spec.alias, error, asker, counts=counts)
        return dataclasses.replace(returned, notes=(*returned.notes, *asker.notes))

    def _gate(self, spec: ToolSpec) -> Gate:
        config = self._config(spec.server)
        return Gate.DENY if config is None else gate(config, spec)

    async def _session(self, spec: ToolSpec, line: _Line) -> tuple[Connection, HostSession]:
        """Return the connection of the call with its session; another one when that has ended."""
        if not self._is_current(spec):
            raise _gone(spec)
        for last in (False, False, True):
            connection = line.connection
            if connection is None or line.is_over:
                connection = await self._lease(spec, line)
            try:
                return connection, await connection.ready()
            except ServerUnavailable:
                if last or not line.is_over:
                    raise
        raise _gone(spec)

    async def _lease(self, spec: ToolSpec, line: _Line) -> Connection:
        connections = await self._connect(spec.server)
        if connections is None:
            raise _gone(spec)
        if connections.first is line.connection:
            # It is being ended, and says so.
            return connections.first
        asker = PersonAsker(
            spec, config=connections.first.config.elicitation, approver=line.approver
        )
        leased = connections.lease(line.conversation, tell=asker.tell)
        line.connection = await line.held.enter_async_context(leased)
        return line.connection

    def _is_current(self, spec: ToolSpec) -> bool:
        now = self._find(spec.alias)
        return now is not None and (now.definition_sha, now.server_sha) == (
            spec.definition_sha,
            spec.server_sha,
        )


_GONE: Final = "{} was not run: its server is not there any more."
_DENIED: Final = "{} was not run: the policy for this server denies it."


def _gone(spec: ToolSpec) -> ServerUnavailable:
    return ServerUnavailable(spec.server, f"{spec.name} is gone or has changed", sent=False)


def _no_answer(spec: ToolSpec, error: GatewayError) -> str:
    return f"{spec.alias} was not run: {error.public_message}"


def _broken(call: ToolCall, way: _Way) -> ToolResult:
    """Say what became of a call that an error of our own ended."""
    if way.spec is not None and way.out:
        result = _lost(call, way.spec, "of an error in the gateway itself")
    else:
        name = clean_line(call.alias, limit=100)
        text = f"{name} was not run: an error in the gateway itself; its log has the detail"
        result = ToolResult(call=call.id, state=CallState.REFUSED, text=text)
    return dataclasses.replace(result, decision=way.approval.decision)


def _failed(call: ToolCall, spec: ToolSpec, error: ToolHostError | MCPError) -> ToolResult:
    """Say what became of a call that was to be sent."""
    match error:
        case MCPError():
            text = _refusal(spec, error)
        case ToolTimeout() if not spec.repeatable:
            return _lost(call, spec, f"it {error.problem.removeprefix(spec.name).strip()}")
        case ServerUnavailable() if error.sent and not spec.repeatable:
            return _lost(call, spec, f"the connection broke: {error.problem}")
        case _:
            text = f"{error}."
    return ToolResult(call=call.id, state=CallState.ERROR, text=clean_text(text))


def _lost(call: ToolCall, spec: ToolSpec, because: str) -> ToolResult:
    text = (
        f"The outcome of {spec.alias} is unknown, because {because}. "
        "It may have run: check before calling it again."
    )
    return ToolResult(call=call.id, state=CallState.UNKNOWN, text=clean_text(text))


def _refusal(spec: ToolSpec, error: MCPError) -> str:
    if error.code == wire.URL_ELICITATION_REQUIRED:
        return f"{spec.alias} needs a link opened by a person, which is declined here."
    return f"server {spec.server} answered with error {error.code}: {one_line(error.message)}"
