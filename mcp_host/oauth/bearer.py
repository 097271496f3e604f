"""Sends a server's token with each request to it, and asks for another when it is refused.

The SDK's provider is not used for this: it lets one request through at a time and reads each answer
to its end first, so that one stream or one long call would stop all others.
"""

from typing import Final, Protocol

import httpx2

from gateway.domain.errors import NeedsScope
from mcp_host.oauth.discovery import Challenge, challenge_of

_INSUFFICIENT: Final = "insufficient_scope"


class TokenSource(Protocol):
    """Has the token of one server; see `TokenKeeper`."""

    async def token(self) -> str: ...

    async def renewed(self, refused: str, challenge: Challenge) -> str: ...

    async def lacks(self, scope: str) -> NeedsScope: ...


class BearerTransport(httpx2.AsyncBaseTransport):
    """Goes before another transport; a request is sent twice at most.

    Raises:
        NeedsLogin: There is no token, and none can be had without a person: nothing was sent.
        NeedsScope: The request needs a sign-in that allows more.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, source: TokenSource) -> None:
        self._inner = inner
        self._source = source

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request with the token; see the class."""
        token = await self._source.token()
        response = await self._send(request, token)
        if response.status_code == 401:
            await response.aclose()
            token = await self._source.renewed(token, _challenge(response))
            response = await self._send(request, token)
        if response.status_code == 403:
            challenge = _challenge(response)
            if challenge.error == _INSUFFICIENT:
                await response.aclose()
                raise await self._source.lacks(challenge.scope or "")
        return response

    async def _send(self, request: httpx2.Request, token: str) -> httpx2.Response:
        request.headers["authorization"] = f"Bearer {token}"
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the transport that it goes before."""
        await self._inner.aclose()


def _challenge(response: httpx2.Response) -> Challenge:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return challenge_of(response.status_code, headers)
