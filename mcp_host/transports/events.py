"""Reading HTTP responses: server-sent events and bodies, with a bound on what is kept."""

from collections.abc import AsyncGenerator
from typing import Final, cast

import httpx2

from gateway.domain.text import shorten
from mcp_host.errors import one_line
from mcp_host.transports.messages import MAX_MESSAGE

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
LAST_EVENT: Final = "last-event-id"

PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
LONGEST_PAUSE: Final = 60.0
SHOWN_TEXT: Final = 200


class Place:
    """How far a stream of events was read, and when it may be asked for again."""

    def __init__(self) -> None:
        self.last = ""
        self._retry: float | None = None

    def note(self, event: httpx2.ServerSentEvent) -> None:
        """Remember what an event says about its place."""
        self.last = event.id or self.last
        if event.retry is not None:
            self._retry = min(max(event.retry / 1000, 0.0), LONGEST_PAUSE)

    def pause(self, failures: int) -> float:
        """Return how long to wait before asking again, after so many failures in a row."""
        if failures == 0 and self._retry is not None:
            return self._retry
        return max(self._retry or 0.0, PAUSES[min(failures, len(PAUSES) - 1)])

    def headers(self) -> dict[str, str]:
        """Return the headers that ask for the stream from here."""
        own = {"accept": EVENTS, "cache-control": "no-store"}
        return {**own, LAST_EVENT: self.last} if self.last else own


def events_of(response: httpx2.Response) -> AsyncGenerator[httpx2.ServerSentEvent]:
    """Return the events of a response; close it. One above the limit raises `SSEError`."""
    source = httpx2.EventSource(response, max_event_size=MAX_MESSAGE)
    return cast("AsyncGenerator[httpx2.ServerSentEvent]", aiter(source))


async def read_whole(response: httpx2.Response, limit: int = MAX_MESSAGE) -> bytes | None:
    """Return the body, None when it is longer than `limit`."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > limit:
            return None
    return bytes(body)


async def read_start(response: httpx2.Response, limit: int) -> bytes:
    """Return the first bytes of a body."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= limit:
            break
    return bytes(body[:limit])


def content_type(response: httpx2.Response) -> str:
    """Return the type of the body without its parameters, "" when there is none."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def shown_body(response: httpx2.Response, body: bytes) -> str:
    """Return what an error's body says, after a colon; nothing of a page or a picture."""
    kind = content_type(response)
    if kind != "text/plain" and not kind.endswith("json"):
        return ""
    text = one_line(body.decode("utf-8", "replace"))
    return f": {shorten(text, SHOWN_TEXT)}" if text else ""
