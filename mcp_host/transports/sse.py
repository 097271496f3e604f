"""HTTP with SSE, the way before Streamable HTTP: one stream inwards, a POST for each message out."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from urllib.parse import urljoin

import httpx2
import mcp_types as wire
from mcp.shared._httpx_utils import redirect_location, stream_within_origin
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER

from gateway.domain.errors import NeedsLogin, ServerUnavailable, ToolHostError
from mcp_host.transports.events import (
    EVENTS,
    JSON,
    Place,
    content_type,
    events_of,
    read_start,
    shown_body,
)
from mcp_host.transports.failures import is_undecided, shown_url, unavailable
from mcp_host.transports.http import EXPIRED, READ_OF_ERRORS
from mcp_host.transports.messages import MAX_MESSAGE, encode
from mcp_host.transports.network import NetworkLink

logger = logging.getLogger(__name__)


class SseLink(NetworkLink):
    """One stream of a server and the address that belongs to it."""

    def __init__(self, server: str, url: str, client: httpx2.AsyncClient, *, endpoint: str) -> None:
        super().__init__(server, url)
        self._client = client
        self._endpoint = endpoint
        self._version: str | None = None

    async def request(self, message: wire.JSONRPCRequest, headers: dict[str, str]) -> None:
        """Post the request; its answer comes by the stream."""
        await self._post(message, headers)

    async def tell(self, message: wire.JSONRPCMessage, headers: dict[str, str]) -> None:
        """Post a notification or an answer of ours."""
        try:
            await self._post(message, headers)
        except NeedsLogin:
            raise
        except ToolHostError as error:
            logger.debug("%s", error)

    async def hear(self, events: AsyncGenerator[httpx2.ServerSentEvent]) -> None:
        """Deliver what the stream brings; its end is the link's."""
        why = "it ended its stream"
        try:
            async for event in events:
                received = self.read_event(event)
                if received is not None:
                    await self.deliver(received)
        except httpx2.SSEError:
            why = f"it sent an event longer than {MAX_MESSAGE >> 20} MiB"
        except httpx2.TransportError as error:
            why = unavailable(self.server, self.url, error).problem
        self.end(why)

    async def _post(self, message: wire.JSONRPCMessage, headers: dict[str, str]) -> None:
        if isinstance(message, wire.JSONRPCRequest) and message.method == "initialize":
            self._version = None
        self._version = headers.get(MCP_PROTOCOL_VERSION_HEADER, self._version)
        standing = {MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version else {}
        async with stream_within_origin(
            self._client,
            "POST",
            self._endpoint,
            content=encode(message),
            headers={"content-type": JSON, **standing, **headers},
        ) as response:
            self.reached()
            status = response.status_code
            if status < 300:
                return
            body = await read_start(response, READ_OF_ERRORS)
            problem = f"HTTP {status}{shown_body(response, body)}"
        if status == 404:
            self.end(EXPIRED)
            raise ServerUnavailable(self.server, EXPIRED, sent=False)
        if status == 401:
            raise ServerUnavailable(self.server, problem, sent=False)
        if status >= 500:
            raise ServerUnavailable(self.server, problem, sent=True)
        raise ToolHostError(self.server, f"it refuses us: {problem}")


@asynccontextmanager
async def open_sse(server: str, url: str, client: httpx2.AsyncClient) -> AsyncGenerator[SseLink]:
    """Open the stream and yield the link once the server has named its address.

    Raises:
        ToolHostError: It answers with something else, or names an address elsewhere.
        ServerUnavailable: It could not be reached now.
    """
    try:
        async with (
            stream_within_origin(client, "GET", url, headers=Place().headers()) as response,
            aclosing(events_of(response)) as events,
        ):
            await _expect_events(server, url, response)
            endpoint = await _endpoint(server, url, events)
            link = SseLink(server, url, client, endpoint=endpoint)
            reader = link.spawn(link.hear(events), name="events")
            try:
                yield link
            finally:
                # The stream belongs to the reader until it is gone.
                reader.cancel()
                await link.close()
    except httpx2.TransportError as error:
        raise unavailable(server, url, error) from None


async def _expect_events(server: str, url: str, response: httpx2.Response) -> None:
    elsewhere = redirect_location(response)
    if elsewhere is not None:
        where = shown_url(str(elsewhere))
        raise ToolHostError(server, f"it redirects to {where}, which is not followed")
    status, kind = response.status_code, content_type(response)
    if status == 200 and kind == EVENTS:
        return
    body = await read_start(response, READ_OF_ERRORS)
    problem = f"{shown_url(url)} answers HTTP {status} with {kind or 'no content'}"
    said = f"{problem}, not with events{shown_body(response, body)}"
    if is_undecided(status):
        raise ServerUnavailable(server, said, sent=False)
    raise ToolHostError(server, said)


async def _endpoint(server: str, url: str, events: AsyncGenerator[httpx2.ServerSentEvent]) -> str:
    async for event in events:
        if event.event != "endpoint":
            continue
        endpoint = urljoin(url, event.data.strip())
        # Our headers go there: it must be the same server.
        if _origin(endpoint) != _origin(url):
            raise ToolHostError(server, "it names an address of another origin for our messages")
        return endpoint
    raise ServerUnavailable(server, "it ended its stream without an address", sent=False)


def _origin(url: str) -> tuple[str, str, int | None]:
    parsed = httpx2.URL(url)
    return parsed.scheme, parsed.host, parsed.port
