"""A first look at what a URL answers, so that a web page is told from a server at once.

Only what is surely no server is refused; a doubt leaves the word to the real request.
"""

import asyncio
import json
from contextlib import aclosing
from typing import Final
from urllib.parse import urlsplit

import httpx2
from mcp.shared._httpx_utils import stream_within_origin

from gateway.domain.errors import ToolHostError
from mcp_host.network_config import Transport
from mcp_host.transports.events import EVENTS, JSON, content_type, events_of
from mcp_host.transports.failures import shown_url, unavailable

LOOK_SECONDS: Final = 0.8
"""For each of two requests: a page must be told from a server in less than two seconds."""

_PING: Final = json.dumps({"jsonrpc": "2.0", "id": "preflight", "method": "ping"}).encode()


async def look(server: str, url: str, client: httpx2.AsyncClient) -> Transport:
    """Return how the URL wants to be spoken to.

    Raises:
        ToolHostError: It is a web page.
        ServerUnavailable: It could not be reached.
    """
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            page = await _page(url, client)
            if page is Transport.SSE:
                return Transport.SSE
        if page is None:
            return Transport.HTTP
        async with asyncio.timeout(LOOK_SECONDS):
            if await _takes_messages(url, client):
                return Transport.HTTP
    except TimeoutError:
        return Transport.HTTP
    except httpx2.TransportError as error:
        failure = unavailable(server, url, error)
        if failure.sent:
            return Transport.HTTP
        raise failure from None
    said = f"{shown_url(url)} answers with {page}: that is a web page, not an MCP server"
    raise ToolHostError(server, said)


async def _page(url: str, client: httpx2.AsyncClient) -> Transport | str | None:
    """Return the type of what a GET shows when no server would show it, else None."""
    headers = {"accept": f"{EVENTS}, {JSON}"}
    async with stream_within_origin(client, "GET", url, headers=headers) as response:
        kind = content_type(response)
        if not response.is_success or not kind or kind == JSON:
            return None
        if kind != EVENTS:
            return kind
        if urlsplit(url).path.rstrip("/").endswith("/sse"):
            async with aclosing(events_of(response)) as events:
                async for event in events:
                    return Transport.SSE if event.event == "endpoint" else None
        return None


async def _takes_messages(url: str, client: httpx2.AsyncClient) -> bool:
    headers = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON}
    async with stream_within_origin(
        client, "POST", url, content=_PING, headers=headers
    ) as response:
        kind = content_type(response)
        if kind in {JSON, EVENTS} or (response.is_success and not kind):
            return True
        # Any other refusal is about who asks or how: the real request will tell.
        return not response.is_success and response.status_code not in {404, 405}
