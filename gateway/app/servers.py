"""The MCP servers of a home for shell commands: what is configured, one connection, one call.

Opens only the server it is asked about; no store, and no lock of the home.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from gateway.app.parts import open_host
from gateway.domain.canonical import CanonicalJson
from gateway.domain.errors import ToolHostError
from gateway.domain.form import FormAction, FormAnswer
from gateway.domain.ids import QuestionId
from gateway.domain.tools import CallState, ToolCall, ToolResult, ToolSpec
from gateway.ports import Approval, FormRequest, SamplingRequest
from gateway.telemetry import agent_log

if TYPE_CHECKING:
    from gateway.config.home import Home
    from gateway.config.load import Loaded
    from mcp_host.connection import Agreed
    from mcp_host.host import McpHost
    from mcp_host.server_config import ServerConfig

CALL_ID: Final = "cli"

Ask = Callable[[ToolSpec, CanonicalJson], Awaitable[bool]]
"""Asks the operator whether a tool may run with these arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of `mcp_servers`; without a `config` it cannot be used, and `problem` says why."""

    name: str
    config: "ServerConfig | None"
    problem: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call by the operator: `tool` is the server's own name for it, or its alias."""

    tool: str
    arguments: CanonicalJson


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Whoever typed the command. `yes` allows the call; `ask` is None without a terminal."""

    yes: bool = False
    ask: Ask | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What one connection showed; without `agreed` there was none, and `error` says why."""

    agreed: "Agreed | None" = None
    tools: tuple[ToolSpec, ...] = ()
    call: ToolResult | None = None
    warnings: tuple[str, ...] = ()
    error: str = ""


def entries(loaded: "Loaded") -> Sequence[Entry]:
    """Return every entry of the file in its order, also those that cannot be used."""
    written = loaded.shown.get("mcp_servers")
    if not isinstance(written, Mapping):
        return ()
    names = [str(name) for name in cast("Mapping[object, object]", written)]
    return tuple(_entry(loaded, name, names) for name in names)


async def check_server(
    home: "Home", loaded: "Loaded", entry: Entry, *, request: Request | None, operator: Operator
) -> Tested:
    """Connect once, list the tools, and make the call if there is one."""
    if entry.config is None:
        return Tested(warnings=entry.warnings, error=entry.problem)
    warnings = list(entry.warnings)
    if not entry.config.enabled:
        warnings.append("it is not enabled: chats do not see it")
    async with open_alone(home, loaded, entry.name, entry.config) as host:
        try:
            agreed = await host.try_server(entry.name)
        except ToolHostError as error:
            return Tested(warnings=tuple(warnings), error=error.problem)
        called = None
        if request is not None:
            called = await _call(host, entry.name, request, operator)
        return Tested(
            agreed=agreed,
            tools=tuple(host.tools()),
            call=called,
            warnings=(*warnings, *host.servers()[0].notes),
        )


async def call_tool(
    home: "Home", loaded: "Loaded", entry: Entry, request: Request, *, operator: Operator
) -> ToolResult:
    """Make one call through the whole host path; what cannot be allowed starts no server."""
    if entry.config is None:
        return _not_run(CallState.ERROR, f"server {entry.name}: {entry.problem}.")
    if not entry.config.enabled:
        return _not_run(CallState.ERROR, f"server {entry.name} is not enabled.")
    refusal = _refusal(entry.config, request.tool, operator)
    if refusal:
        return _not_run(CallState.REFUSED, f"{request.tool} was not run: {refusal}.")
    async with open_alone(home, loaded, entry.name, entry.config) as host:
        try:
            await host.try_server(entry.name)
        except ToolHostError as error:
            return _not_run(CallState.ERROR, f"{error}.")
        return await _call(host, entry.name, request, operator)


@asynccontextmanager
async def open_alone(
    home: "Home", loaded: "Loaded", name: str, config: "ServerConfig"
) -> AsyncGenerator["McpHost"]:
    """Yield a host of this server alone, enabled or not."""
    from gateway.runtime.clock import SystemClock

    # Asked for by name is reason enough to connect.
    servers = {name: config.model_copy(update={"enabled": True})}
    alone = replace(loaded.config, mcp_servers=servers)
    async with open_host(home, alone, SystemClock(), lambda: servers) as host:
        yield host


# --- inside -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _OperatorApprover:
    """Implements `Approver` for a call that belongs to no conversation."""

    operator: Operator
    arguments: CanonicalJson

    async def approve(self, spec: ToolSpec) -> Approval:
        if self.operator.yes:
            return Approval(allowed=True)
        if self.operator.ask is None:
            return Approval(allowed=False, reason=_NOBODY)
        if await self.operator.ask(spec, self.arguments):
            return Approval(allowed=True)
        return Approval(allowed=False, reason="you did not allow it")

    async def started(self, question: QuestionId | None) -> CanonicalJson:
        del question
        return self.arguments

    async def elicit(self, request: FormRequest) -> FormAnswer:
        del request
        reason = "a form can be answered in a chat only"
        return FormAnswer(action=FormAction.DECLINE, reason=reason)

    async def sample(self, request: SamplingRequest) -> Approval:
        del request
        return Approval(allowed=self.operator.yes, reason="nobody can be asked here without a chat")

    async def tell(self, text: str) -> None:
        # What the operator must know is in the result.
        del text


_NOBODY: Final = "it needs an approval and there is no terminal to ask at; --yes allows it"


async def _call(host: "McpHost", server: str, request: Request, operator: Operator) -> ToolResult:
    from adapters.terminal.ids import PERSON, PLACE

    named = (spec for spec in host.tools() if spec.name == request.tool)
    spec = next(named, None) or host.find(request.tool)
    call = ToolCall(
        id=CALL_ID,
        alias=request.tool if spec is None else spec.alias,
        arguments=request.arguments,
        place=PLACE,
        requester=PERSON,
    )
    approver = _OperatorApprover(operator=operator, arguments=request.arguments)
    result = await host.call(call, approver)
    agent_log.tool_call(
        conversation=CALL_ID,
        server=server,
        tool=request.tool if spec is None else spec.name,
        ms=result.ms,
        outcome=result.state,
        error="" if result.state is CallState.OK else result.text,
    )
    return result


def _refusal(config: "ServerConfig", tool: str, operator: Operator) -> str:
    """Say why a call cannot be allowed when that is known without the server, else ""."""
    from mcp_host.trust import Gate, gate_by_name

    if tool.startswith("mcp_"):
        # An alias does not spell the name that the policy is about.
        return ""
    match gate_by_name(config, tool):
        case Gate.DENY:
            return "the policy for this server denies it"
        case Gate.ASK if not operator.yes and operator.ask is None:
            return _NOBODY
        case _:
            return ""


def _not_run(state: CallState, text: str) -> ToolResult:
    return ToolResult(call=CALL_ID, state=state, text=text)


def _entry(loaded: "Loaded", name: str, names: Sequence[str]) -> Entry:
    about = [item for item in loaded.findings.items if _is_about(item.path, name, names)]
    config = loaded.config.mcp_servers.get(name)
    said = tuple(f"{item.path}: {item.message}" for item in about)
    if config is not None:
        return Entry(name=name, config=config, warnings=said)
    errors = loaded.findings.errors
    why = next((item for item in about if item in errors), about[-1] if about else None)
    problem = "it cannot be used" if why is None else f"{why.path}: {why.message}"
    return Entry(
        name=name,
        config=None,
        problem=problem,
        warnings=tuple(line for line in said if line != problem),
    )


def _is_about(path: str, name: str, names: Sequence[str]) -> bool:
    """Tell whether a finding is about this server; a name may begin with another and a dot."""
    fitting = [each for each in names if f"{path}.".startswith(f"mcp_servers.{each}.")]
    return max(fitting, key=len, default=None) == name
