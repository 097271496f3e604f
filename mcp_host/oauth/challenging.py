"""Asks a server for its challenge, as somebody who is not signed in: what it says then leads on."""

import asyncio
import json
from collections.abc import Sequence
from typing import Final

import httpx2

from gateway.domain.errors import ServerUnavailable
from mcp_host.oauth.discovery import Challenge, challenge_of
from mcp_host.server_config import ServerConfig
from mcp_host.transports.client import make_client
from mcp_host.transports.failures import shown_url, unavailable

CHALLENGE_SECONDS: Final = 10.0

_HEADERS: Final = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}


async def challenge_from(server: str, config: ServerConfig) -> Challenge | None:
    """Return the server's refusal, None when it refuses nothing: then its metadata alone lead on.

    Raises:
        ToolHostError: Its entry cannot be used as it is.
        ServerUnavailable: It could not be reached now.
    """
    from mcp.shared._httpx_utils import stream_within_origin
    from mcp_types import LATEST_PROTOCOL_VERSION

    try:
        async with asyncio.timeout(CHALLENGE_SECONDS), make_client(server, config) as client:
            for request in _requests(LATEST_PROTOCOL_VERSION):
                async with stream_within_origin(
                    client, "POST", config.url, content=request, headers=_HEADERS
                ) as response:
                    said = {name.lower(): value for name, value in response.headers.items()}
                    if response.status_code in {401, 403}:
                        return challenge_of(response.status_code, said)
            return None
    except TimeoutError:
        problem = f"{shown_url(config.url)} did not answer within {CHALLENGE_SECONDS:g} s"
        raise ServerUnavailable(server, problem, sent=False) from None
    except httpx2.TransportError as error:
        raise unavailable(server, config.url, error) from None


def _requests(version: str) -> Sequence[bytes]:
    """Return what to ask: some servers greet everybody, and refuse what comes next."""
    who = {"name": "hermes", "version": "0"}
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": who}
    asked = ({"method": "initialize", "params": hello}, {"method": "tools/list"})
    return [json.dumps({"jsonrpc": "2.0", "id": "sign-in", **each}).encode() for each in asked]
