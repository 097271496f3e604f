"""The client that the MCP conformance suite drives: the host itself, with one server by URL.

    python -m tests.conformance.client URL

The suite says in the environment what it plays (`MCP_CONFORMANCE_SCENARIO`), which revision it
speaks and, for some scenarios, what to call. Nothing here speaks the protocol.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2

from gateway.domain.canonical import CanonicalJson, canonical
from gateway.domain.errors import ToolHostError
from gateway.domain.form import FieldKind, FormAction, FormAnswer, FormField, Unset
from gateway.domain.ids import Actor, ChatType, Place, QuestionId
from gateway.domain.model import Finish, ModelReply, ModelRequest, Usage
from gateway.domain.tools import CallState, ToolCall, ToolResult, ToolSpec
from gateway.ports import Approval, FormRequest, SamplingRequest
from gateway.ports.signing_in import DeviceCode, SignInLink
from gateway.runtime.clock import SystemClock
from mcp_host.host import McpHost, open_host
from mcp_host.oauth.login import sign_in
from mcp_host.oauth.tokens import TokenStore
from mcp_host.server_config import McpConfig, ServerConfig

SERVER: Final = "suite"
STATELESS: Final = "2026-07-28"
READY_SECONDS: Final = 20.0

HANDSHAKE_ALWAYS: Final = frozenset({"json-schema-ref-no-deref"})
"""Scenarios whose server knows the handshake alone, whatever the revision."""
SIGNED_IN: Final = "auth/"
"""Scenarios whose server wants a sign-in."""
DOCUMENT: Final = "https://conformance-test.local/client-metadata.json"
"""Who we are where the suite takes a document: it knows this one, and nobody serves it."""
LOGINS: Final = 3


MUST_SUCCEED: Final = "sep-2322"
"""Scenarios in which a call that fails is a failure of ours."""

Call = tuple[str, Mapping[str, Any]]


class Agreeable:
    """Implements `Approver`: allows everything, and answers forms with what they suggest."""

    def __init__(self, arguments: CanonicalJson) -> None:
        self._arguments = arguments

    async def approve(self, spec: ToolSpec) -> Approval:
        del spec
        return Approval(allowed=True)

    async def started(self, question: QuestionId | None) -> CanonicalJson:
        del question
        return self._arguments

    async def elicit(self, request: FormRequest) -> FormAnswer:
        if request.problem:
            return FormAnswer(action=FormAction.DECLINE, reason=request.problem)
        content = {field.name: _answer(field) for field in request.form.fields if _fills(field)}
        return FormAnswer(action=FormAction.ACCEPT, content=content)

    async def sample(self, request: SamplingRequest) -> Approval:
        del request
        return Approval(allowed=True)

    async def tell(self, text: str) -> None:
        raise AssertionError(f"nothing was to be told: {text}")


class SaysNothing:
    """Implements `ModelProvider` with empty answers."""

    name = "conformance:none"
    context_window = None
    asks_person = False

    async def complete(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        del request, on_text
        return ModelReply(text="", calls=(), usage=Usage(), finish=Finish.STOP, model=self.name)


async def play(url: str, *, scenario: str, revision: str, context: Mapping[str, Any]) -> bool:
    """Connect, do what the scenario needs done, and disconnect; False when that went wrong."""
    handshake = revision < STATELESS or scenario in HANDSHAKE_ALWAYS
    given = {"url": url, "protocol": "legacy" if handshake else "stateless"}
    if scenario.startswith(SIGNED_IN):
        given |= {"auth": "oauth", "oauth": _client(scenario, context)}
    entry = ServerConfig.model_validate(given)
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens"
        async with open_host(
            {SERVER: entry},
            mcp=McpConfig(),
            clock=SystemClock(),
            stderr_log=None,
            version="0",
            reload=lambda: {SERVER: entry},
            models=SaysNothing(),
            tokens=tokens,
        ) as host:
            await host.wait_ready(READY_SECONDS)
            login = Login(host, entry, tokens)
            while host.servers()[0].needs_login and login.left:
                await login.once()
            good = True
            for tool, arguments in calls_of(scenario, host.tools(), context):
                result = await call(host, tool, arguments)
                while result.state is not CallState.OK and login.helps(result.text):
                    await login.once()
                    result = await call(host, tool, arguments)
                if result.state is not CallState.OK:
                    sys.stderr.write(f"{tool}: {result.state}: {result.text}\n")
                    good = good and not scenario.startswith(MUST_SUCCEED)
            return good


class Login:
    """Signs in as a person at a shell would, with a browser that says yes to everything."""

    def __init__(self, host: McpHost, entry: ServerConfig, tokens: Path) -> None:
        self._host = host
        self._entry = entry
        self._store = TokenStore(tokens)
        self.left = LOGINS

    def helps(self, said: str) -> bool:
        """Tell whether what a call said asks for a login, and one is left."""
        return self.left > 0 and f"hermes mcp login {SERVER}" in said

    async def once(self) -> None:
        """Sign in, and have the host take it up as the watch of a gateway does."""
        self.left -= 1
        try:
            await sign_in(
                SERVER,
                self._entry,
                store=self._store,
                person=YesToAll(),
                environ={},
                clock=SystemClock(),
                document_url=DOCUMENT,
            )
        except ToolHostError as error:
            sys.stderr.write(f"{error}\n")
            self.left = 0
            return
        await self._host.reload(SERVER)


class YesToAll:
    """Implements `Person`: opens each page, and follows where it is sent."""

    async def show_link(self, link: SignInLink) -> None:
        async with httpx2.AsyncClient(trust_env=False) as browser:
            answer = await browser.get(link.url)
            if "location" in answer.headers:
                await browser.get(answer.headers["location"])

    async def show_code(self, code: DeviceCode) -> None:
        del code

    async def pasted(self) -> str:
        return await asyncio.Future[str]()

    def tell(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")


def _client(scenario: str, context: Mapping[str, Any]) -> dict[str, object]:
    """Return the `oauth` section of a scenario: who we are there, when the suite says so."""
    client = {name: context[name] for name in ("client_id", "client_secret") if context.get(name)}
    if "client-credentials" in scenario:
        return {**client, "flow": "client_credentials"}
    return {**client, "timeout": READY_SECONDS}


def calls_of(
    scenario: str, tools: Sequence[ToolSpec], context: Mapping[str, Any]
) -> Sequence[Call]:
    """Return the calls that a scenario waits for."""
    known = {tool.name: tool for tool in tools}
    match scenario:
        case "initialize" | "json-schema-ref-no-deref":
            return ()
        case "tools_call" | "request-metadata" | "http-standard-headers":
            return (("add_numbers", {"a": 5, "b": 3}),)
        case "sse-retry":
            return (("test_reconnection", {}),)
        case "elicitation-sep1034-client-defaults":
            return (("test_client_elicitation_defaults", {}),)
        case "json-schema-2020-12-preservation":
            schema = known["json_schema_2020_12_tool"].input_schema
            return (("json_schema_echo", {"schema": schema}),)
        case "sep-2322-client-request-state":
            names = ("echo_state", "unrelated", "no_state", "no_result_type")
            return tuple((f"test_mrtr_{name}", {}) for name in names)
        case "http-custom-headers":
            wanted = context.get("toolCalls", [])
            return tuple(
                (item["name"], item.get("arguments") or {})
                for item in wanted
                if item["name"] in known
            )
        case "http-invalid-tool-headers":
            return tuple((tool.name, _stand_ins(tool)) for tool in tools)
        case _:
            return tuple((tool.name, {}) for tool in tools[:1])


async def call(host: McpHost, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
    """Call a tool by its own name, through the host's one way."""
    alias = next((spec.alias for spec in host.tools() if spec.name == tool), tool)
    asked = ToolCall(
        id=tool,
        alias=alias,
        arguments=canonical(dict(arguments)),
        place=Place(platform="conformance", chat="1", chat_type=ChatType.DM),
        requester=Actor(platform="conformance", id="1"),
    )
    return await host.call(asked, Agreeable(asked.arguments))


def _fills(field: FormField) -> bool:
    return field.required or not isinstance(field.default, Unset)


def _answer(field: FormField) -> object:
    if not isinstance(field.default, Unset):
        return field.default
    if field.options:
        first = field.options[0].value
        return [first] if field.kind is FieldKind.MULTI else first
    plain: Mapping[FieldKind, object] = {
        FieldKind.BOOLEAN: True,
        FieldKind.INTEGER: 0,
        FieldKind.NUMBER: 0,
    }
    return plain.get(field.kind, "x")


def _stand_ins(tool: ToolSpec) -> Mapping[str, Any]:
    """Return arguments of the right types for what a tool requires."""
    plain: Mapping[object, object] = {"integer": 0, "number": 0, "boolean": False}
    plain = {**plain, "object": dict[str, object](), "array": list[object]()}
    schema: Any = tool.input_schema
    properties: Any = schema.get("properties", {})
    return {
        name: plain.get(properties.get(name, {}).get("type"), "x")
        for name in schema.get("required", [])
    }


def main() -> int:
    good = asyncio.run(
        play(
            sys.argv[1],
            scenario=os.environ.get("MCP_CONFORMANCE_SCENARIO", ""),
            revision=os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25"),
            context=json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
        )
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
