"""`POST /v1/calls`: one tool call for the operator, through the whole way of the host, gate included."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from adapters.terminal.ids import attached_place
from gateway.control.body import Body, read_body
from gateway.control.callers import caller, check_no_agent
from gateway.control.desk import Desk
from gateway.control.problems import Problem
from gateway.domain.canonical import CanonicalJson, NotCanonical, canonical
from gateway.domain.form import FormAction, FormAnswer
from gateway.domain.ids import QuestionId
from gateway.domain.operations.upkeep import AddAudit
from gateway.domain.question import Surface
from gateway.domain.tools import ToolCall, ToolResult, ToolSpec
from gateway.ports import Approval, FormRequest, SamplingRequest
from gateway.runtime.redact import redacted

CHAT: Final = "call"
"""The chat such calls belong to; nobody is attached there, so nobody can be asked."""

GATED: Final = "it needs an approval: say beforehand that it may run"


class CallRoutes:
    """Calls without a conversation."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def call(self, request: Request) -> Response:
        """Call a tool; a gated one runs only when the request says that it may."""
        desk, body = self._desk, await read_body(request)
        if desk.leaving():
            raise Problem("stopping", "the gateway is stopping; nothing was called")
        check_no_agent(request, desk)
        spec, arguments = self._spec(body), _arguments(body)
        call = ToolCall(
            id="control",
            alias=spec.alias,
            arguments=arguments,
            place=attached_place(CHAT),
            requester=caller(desk),
        )
        result = await desk.host.call(call, _Word(arguments, given=body.flag("allow")))
        await self._note(spec, body, result)
        return JSONResponse(
            {
                "state": result.state.value,
                "text": result.text,
                "structured": None if result.structured is None else dict(result.structured),
                "meta": dict(result.meta),
                "ms": result.ms,
            }
        )

    def _spec(self, body: Body) -> ToolSpec:
        server, tool = body.text("server"), body.text("tool")
        for spec in self._desk.host.tools():
            if spec.server == server and tool in {spec.name, spec.alias}:
                return spec
        raise Problem("not_found", f"there is no tool {tool} of a server {server}")

    async def _note(self, spec: ToolSpec, body: Body, result: ToolResult) -> None:
        detail: dict[str, Any] = {
            "arguments": redacted(body.object_or_none("arguments"), redact=self._desk.redact),
            "state": result.state.value,
        }
        await self._desk.store.add_audit(
            AddAudit(
                actor=caller(self._desk),
                surface=Surface.CLI,
                action="call",
                subject=spec.alias,
                detail=detail,
            )
        )


class _Word:
    """Implements `Approver` with the word that was given beforehand."""

    def __init__(self, arguments: CanonicalJson, *, given: bool) -> None:
        self._arguments = arguments
        self._given = given

    async def approve(self, spec: ToolSpec) -> Approval:
        del spec
        return Approval(allowed=self._given, reason="" if self._given else GATED)

    async def started(self, question: QuestionId | None) -> CanonicalJson:
        del question
        return self._arguments

    async def elicit(self, request: FormRequest) -> FormAnswer:
        del request
        return FormAnswer(action=FormAction.CANCEL, reason="nobody can be asked here", asked=False)

    async def sample(self, request: SamplingRequest) -> Approval:
        del request
        return Approval(
            allowed=self._given, reason="" if self._given else "nobody can be asked here"
        )

    async def tell(self, text: str) -> None:
        # What the caller must know is in the result.
        del text


def _arguments(body: Body) -> CanonicalJson:
    try:
        return canonical(dict(body.object_or_none("arguments") or {}))
    except NotCanonical as error:
        raise Problem("invalid_arguments", f"arguments: {error}") from error
