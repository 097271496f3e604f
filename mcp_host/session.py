"""The SDK's client session, made fit for a host: what it advertises and what it tolerates.

Results are read raw, so that a server's small mistake costs a field instead of the call. Each
SDK hook overridden here has a contract test.
"""

import itertools
from collections.abc import Awaitable, Callable, Collection, Mapping
from enum import StrEnum
from typing import Any, Final, cast

import anyio
import anyio.abc
import mcp_types as wire
from mcp import ClientSession, MCPError
from mcp.client.session import IncomingMessage
from mcp.shared.dispatcher import (
    CallOptions,
    DispatchContext,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_host.param_headers import ParamHeaders
from mcp_host.sampling import SAMPLE, SamplingRefused
from mcp_host.transports.base import Link

ELICIT: Final = "elicitation/create"
LISTEN: Final = "subscriptions/listen"

_FIRST_OWN_ID: Final = 1_000_001
"""Our requests count from here, so that they never meet the ids the SDK gives its own."""

_OPTIONAL_FIELDS: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What a server may leave out and the SDK insists on, with what its absence means."""

_LIST_CHANGES: Final = (
    wire.ToolListChangedNotification,
    wire.ResourceListChangedNotification,
    wire.PromptListChangedNotification,
)

Sample = Callable[[Mapping[str, object]], Awaitable[dict[str, object]]]
"""Answers a server's `sampling/createMessage` in the same way; raises `SamplingRefused`."""

Elicit = Callable[[Mapping[str, object]], Awaitable[dict[str, object]]]
"""Answers a server's `elicitation/create`, raw parameters in, raw result out."""


class Era(StrEnum):
    """How a server is spoken to: by handshake, or statelessly since 2026-07-28."""

    LEGACY = "legacy"
    MODERN = "modern"


class HostDispatcher(JSONRPCDispatcher[TransportContext]):
    """Says when the link is down, and remembers requests that were given up unanswered."""

    def __init__(self, link: Link, *, on_closed: Callable[[], None]) -> None:
        super().__init__(link.incoming, link.outgoing)
        self._on_closed = on_closed
        self._given_up: set[wire.RequestId] = set()

    @property
    def closed(self) -> bool:
        """True once nothing can be sent or received any more."""
        return self._closed

    @property
    def awaits_late_answers(self) -> bool:
        """True while the server may still work on a request nobody waits for."""
        return bool(self._given_up)

    def give_up(self, request: wire.RequestId) -> None:
        """Note a request whose caller went away."""
        self._given_up.add(request)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self._on_closed()

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: wire.RequestId | None = None,
    ) -> dict[str, Any]:
        raw = await super().send_raw_request(
            method, params, opts, _related_request_id=_related_request_id
        )
        return {**_OPTIONAL_FIELDS, **raw}

    def _resolve_pending(
        self, request_id: wire.RequestId | None, outcome: dict[str, Any] | wire.ErrorData
    ) -> None:
        if request_id is not None:
            self._given_up.discard(request_id)
        super()._resolve_pending(request_id, outcome)


class HostSession(ClientSession):
    """One session over a link; enter and leave it in the task that owns the connection."""

    def __init__(
        self,
        link: Link,
        *,
        version: str,
        elicit: Elicit | None,
        elicit_links: bool = False,
        sample: Sample | None = None,
        sample_with_tools: bool = False,
        on_lists_changed: Callable[[], None],
        on_closed: Callable[[], None],
    ) -> None:
        self.closing = ""
        """Why we end the session, when we do."""
        self._link = link
        self._host_dispatcher = HostDispatcher(link, on_closed=on_closed)
        self._elicit = elicit
        self._elicit_links = elicit_links
        self._sample = sample
        self._sample_with_tools = sample_with_tools
        self._on_lists_changed = on_lists_changed
        self._ids = itertools.count(_FIRST_OWN_ID)
        self._param_headers = ParamHeaders()
        super().__init__(
            dispatcher=self._host_dispatcher,
            message_handler=self._on_message,
            client_info=wire.Implementation(name="hermes", version=version),
        )

    @property
    def era(self) -> Era:
        """The era that was negotiated; `LEGACY` before that."""
        modern = self.protocol_version in MODERN_PROTOCOL_VERSIONS
        return Era.MODERN if modern else Era.LEGACY

    @property
    def closed(self) -> bool:
        """True once nothing can be sent or received any more."""
        return self._host_dispatcher.closed

    @property
    def awaits_late_answers(self) -> bool:
        """True while the server may still work on a call nobody waits for."""
        return self._host_dispatcher.awaits_late_answers

    async def request(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        may_ask: bool = False,
    ) -> dict[str, object]:
        """Send one request and return its raw result; cancelling it cancels it on the wire.

        `may_ask`: the server may put questions while it works on this, also after a cancellation.

        Raises:
            MCPError: The server answered with an error, or the link broke after sending.
            ServerUnavailable: With `sent=False`: nothing reached the server.
        """
        data: dict[str, Any] = {"method": method}
        if params is not None:
            data["params"] = dict(params)
        identifier = next(self._ids)
        options: CallOptions = {"request_id": identifier}
        self._stamp(data, options)
        try:
            raw = await self._host_dispatcher.send_raw_request(method, data.get("params"), options)
        except anyio.get_cancelled_exc_class():
            if may_ask:
                self._host_dispatcher.give_up(identifier)
            raise
        if method == "tools/list" and self.era is Era.MODERN:
            raw = self._param_headers.take(raw)
        return cast("dict[str, object]", raw)

    @property
    def needs_person(self) -> bool:
        """True when it is closed and only a person can get its server back."""
        return self._link.needs_person

    async def why_closed(self) -> str:
        """Say why the session is closed."""
        return self.closing or await self._link.why_ended()

    async def listen_for_changes(self, lists: Collection[str]) -> None:
        """Keep a 2026-07-28 server telling us of changes in its lists; returns when it stops."""
        wanted = {f"{name}ListChanged": True for name in lists}
        await self.request(LISTEN, {"notifications": wanted})

    def _resolve_param_headers(self, name: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        # The SDK asks while it stamps a call; what it knows itself comes from lists it has read.
        return self._param_headers.of(name, arguments)

    def _build_capabilities(self, version: str) -> wire.ClientCapabilities:
        # The SDK would advertise URL mode with any callback.
        capabilities = super()._build_capabilities(version)
        if self._elicit is not None:
            form = wire.FormElicitationCapability()
            url = wire.UrlElicitationCapability() if self._elicit_links else None
            capabilities.elicitation = wire.ElicitationCapability(form=form, url=url)
        if self._sample is not None:
            tools = wire.SamplingToolsCapability() if self._sample_with_tools else None
            capabilities.sampling = wire.SamplingCapability(tools=tools)
        return capabilities

    async def _on_request(
        self,
        dctx: DispatchContext[TransportContext],
        method: str,
        params: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        # Before the SDK parses it: a form it would refuse deserves a reason in the chat.
        if method == ELICIT and self._elicit is not None:
            return await self._elicit(params or {})
        if method == SAMPLE and self._sample is not None:
            try:
                return await self._sample(params or {})
            except SamplingRefused as refused:
                raise MCPError(code=refused.kind.value, message=refused.why) from None
        return await super()._on_request(dctx, method, params)

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, _LIST_CHANGES):
            self._on_lists_changed()
