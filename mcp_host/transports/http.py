"""Streamable HTTP: each message a POST, its answer JSON or a stream of events.

Written on the SDK's redirect rule and message types, not on its transport: that one hides the
status, lets one refused request cancel the whole connection, and gives up its stream of news.
"""

import asyncio
import logging
import re
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Final
from urllib.parse import urlsplit

import httpx2
import mcp_types as wire
from mcp.shared._httpx_utils import redirect_location, stream_within_origin
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.domain.errors import NeedsLogin, ServerUnavailable, ToolHostError
from mcp_host.transports.events import (
    EVENTS,
    JSON,
    Place,
    content_type,
    events_of,
    read_start,
    read_whole,
    shown_body,
)
from mcp_host.transports.failures import is_undecided, shown_url, unavailable
from mcp_host.transports.messages import encode, failure, parse, too_long
from mcp_host.transports.network import CANCELLED, NetworkLink

logger = logging.getLogger(__name__)

SESSION: Final = "mcp-session-id"
INITIALIZED: Final = "notifications/initialized"
EXPIRED: Final = "its session expired"
RESUMES: Final = 5
"""How often in a row a broken answer is asked for again in vain before it is given up."""

NEWS_FAILURES_TO_END: Final = 3
GOODBYE_SECONDS: Final = 1.0
READ_OF_ERRORS: Final = 64 << 10

_SESSION_IS_GONE: Final = re.compile(
    rb"(?i)session[^.]{0,40}(?:not found|expired|invalid|unknown|terminated|closed)"
    rb"|(?:invalid|unknown|expired|no valid)[^.]{0,40}session"
)


class HttpLink(NetworkLink):
    """One session of Streamable HTTP, or the stateless way since 2026-07-28."""

    def __init__(self, server: str, url: str, client: httpx2.AsyncClient) -> None:
        super().__init__(server, url)
        self._client = client
        self._session: str | None = None
        self._version: str | None = None
        self._answered = False

    async def request(self, message: wire.JSONRPCRequest, headers: dict[str, str]) -> None:
        """Post the request and deliver everything that comes back on its response."""
        if message.method == "initialize":
            # It negotiates both; what an earlier probe was stamped with must not leak into it.
            self._session = self._version = None
        async with self._post(message, headers) as response:
            self.reached()
            await self._take_answer(response, message)

    async def tell(self, message: wire.JSONRPCMessage, headers: dict[str, str]) -> None:
        """Post a notification or an answer of ours."""
        method = message.method if isinstance(message, wire.JSONRPCNotification) else ""
        if method == CANCELLED and self._version in MODERN_PROTOCOL_VERSIONS:
            # There, closing the response is what cancels a request.
            return
        async with self._post(message, headers) as response:
            self.reached()
            status = response.status_code
        if status >= 300:
            logger.debug("server %s: HTTP %d to %s", self.server, status, method or "an answer")
        elif method == INITIALIZED and self._session is not None:
            self.spawn(self._hear_news(), name="news")

    async def say_goodbye(self) -> None:
        """Tell the server that its session is over; it need not listen."""
        if self._session is None or self.ended:
            return
        try:
            async with asyncio.timeout(GOODBYE_SECONDS), self._open("DELETE", {}) as response:
                logger.debug("server %s: HTTP %d to goodbye", self.server, response.status_code)
        except (httpx2.TransportError, ToolHostError, TimeoutError):
            logger.debug("server %s: it did not hear our goodbye", self.server)

    # --- requests -------------------------------------------------------------------

    def _post(
        self, message: wire.JSONRPCMessage, headers: dict[str, str]
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        # Remembered for what the session does not stamp: answers, the stream of news, goodbye.
        self._version = headers.get(MCP_PROTOCOL_VERSION_HEADER, self._version)
        own = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON}
        return self._open("POST", {**own, **headers}, content=encode(message))

    def _open(
        self, method: str, headers: dict[str, str], content: bytes | None = None
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        standing: dict[str, str] = {}
        if self._session is not None:
            standing[SESSION] = self._session
        if self._version is not None:
            standing[MCP_PROTOCOL_VERSION_HEADER] = self._version
        return stream_within_origin(
            self._client, method, self.url, content=content, headers={**standing, **headers}
        )

    # --- answers --------------------------------------------------------------------

    async def _take_answer(self, response: httpx2.Response, message: wire.JSONRPCRequest) -> None:
        elsewhere = redirect_location(response)
        if elsewhere is not None:
            where = shown_url(str(elsewhere))
            problem = f"it redirects to {where}, which is not followed: is that its url?"
            raise ToolHostError(self.server, problem)
        status, kind = response.status_code, content_type(response)
        if status >= 400:
            await self._take_refusal(response, message)
            return
        if message.method == "initialize":
            self._session = response.headers.get(SESSION)
        self._answered = True
        if status == 200 and kind == EVENTS:
            await self._take_events(response, message)
        elif status == 200 and kind == JSON:
            await self._take_json(response, message)
        else:
            said = f"HTTP {status} with {kind or 'no content'} is no answer to {message.method}"
            await self.deliver(failure(message.id, wire.INVALID_REQUEST, said))

    async def _take_json(self, response: httpx2.Response, message: wire.JSONRPCRequest) -> None:
        body = await read_whole(response)
        answer = too_long(message.id) if body is None else parse(body)
        if not isinstance(answer, (wire.JSONRPCResponse, wire.JSONRPCError)):
            answer = failure(message.id, wire.INTERNAL_ERROR, "the answer was malformed")
        answer.id = message.id
        await self.deliver(answer)

    async def _take_refusal(self, response: httpx2.Response, message: wire.JSONRPCRequest) -> None:
        status = response.status_code
        body = await read_start(response, READ_OF_ERRORS)
        if self._session is not None and (
            status == 404 or (status == 400 and _SESSION_IS_GONE.search(body))
        ):
            self.end(EXPIRED)
            raise ServerUnavailable(self.server, EXPIRED, sent=False)
        problem = f"HTTP {status}{shown_body(response, body)}"
        if status == 401 and self._answered:
            # It answered before: what it wants now may be there at the next try.
            raise ServerUnavailable(self.server, problem, sent=False)
        if status in {401, 403}:
            raise ToolHostError(self.server, f"it refuses us: {problem}")
        answer = parse(body) if content_type(response) == JSON else None
        if not isinstance(answer, wire.JSONRPCError):
            if is_undecided(status):
                raise ServerUnavailable(self.server, problem, sent=status != 429)
            code = wire.METHOD_NOT_FOUND if status == 404 else wire.INVALID_REQUEST
            answer = failure(message.id, code, f"{problem}{self._hint(status)}")
        answer.id = message.id
        await self.deliver(answer)

    def _hint(self, status: int) -> str:
        path = urlsplit(self.url).path.rstrip("/")
        old_way = status in {400, 404, 405, 406, 415} and path.endswith("/sse")
        return '; an address that ends in /sse may need "transport: sse"' if old_way else ""

    async def _take_events(self, response: httpx2.Response, message: wire.JSONRPCRequest) -> None:
        """Deliver the events until the answer is among them; ask again when they break off."""
        place = Place()
        broke = await self._deliver_until_answer(response, message, place)
        failures = 0
        while broke is not None and place.last and failures < RESUMES:
            before = place.last
            await asyncio.sleep(place.pause(failures))
            try:
                async with self._open("GET", place.headers()) as again:
                    if again.status_code != 200 or content_type(again) != EVENTS:
                        break
                    broke = await self._deliver_until_answer(again, message, place)
            except httpx2.TransportError as error:
                broke = unavailable(self.server, self.url, error).problem
            failures = 0 if place.last != before else failures + 1
        if broke is not None:
            raise ServerUnavailable(self.server, broke, sent=True)

    async def _deliver_until_answer(
        self, response: httpx2.Response, message: wire.JSONRPCRequest, place: Place
    ) -> str | None:
        """Return None once the answer was delivered, else why the stream ended without it."""
        try:
            async with aclosing(events_of(response)) as events:
                async for event in events:
                    place.note(event)
                    received = self.read_event(event)
                    if isinstance(received, (wire.JSONRPCResponse, wire.JSONRPCError)):
                        received.id = message.id
                        await self.deliver(received)
                        return None
                    if received is not None:
                        await self.deliver(received)
        except httpx2.SSEError:
            await self.deliver(too_long(message.id))
            return None
        except httpx2.TransportError as error:
            return unavailable(self.server, self.url, error).problem
        return "the answer broke off"

    # --- what comes unasked -----------------------------------------------------------

    async def _hear_news(self) -> None:
        """Keep a stream open for what the server says unasked, as long as it offers one."""
        place = Place()
        opened = False
        failures = 0
        while True:
            why = "it keeps ending its stream of news"
            try:
                async with self._open("GET", place.headers()) as response:
                    if response.status_code != 200 or content_type(response) != EVENTS:
                        if opened and response.status_code == 404:
                            self.end(EXPIRED)
                        return
                    opened, failures = True, 0
                    async with aclosing(events_of(response)) as events:
                        async for event in events:
                            place.note(event)
                            received = self.read_event(event)
                            if received is not None:
                                await self.deliver(received)
            except NeedsLogin as error:
                self.end_sign_in(error)
                return
            except ToolHostError as error:
                failures += 1
                why = error.problem
            except httpx2.TransportError as error:
                failures += 1
                why = unavailable(self.server, self.url, error).problem
            if opened and failures >= NEWS_FAILURES_TO_END and not self.busy:
                self.end(why)
                return
            await asyncio.sleep(place.pause(failures))
