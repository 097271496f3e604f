"""Opens links to a server at a URL: its client, a first look, and the way that it speaks."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2

from mcp_host.network_config import Transport
from mcp_host.oauth.bearer import TokenSource
from mcp_host.server_config import ServerConfig
from mcp_host.transports.base import Link
from mcp_host.transports.client import make_client
from mcp_host.transports.http import HttpLink
from mcp_host.transports.preflight import look
from mcp_host.transports.sse import open_sse

logger = logging.getLogger(__name__)

_FELL_BACK = 'it speaks the older way: "transport: sse" says so without a try'


class Remote:
    """One server at a URL; what the first look showed is remembered for the next links."""

    def __init__(
        self, server: str, config: ServerConfig, tokens: TokenSource | None = None
    ) -> None:
        self._server = server
        self._config = config
        self._tokens = tokens
        self._way: Transport | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Link]:
        """Yield a new link.

        Raises:
            ToolHostError: Its entry cannot be used as it is, or the URL is no server.
            NeedsLogin: Nobody is signed in to it.
            ServerUnavailable: It could not be reached now.
        """
        async with make_client(self._server, self._config, self._tokens) as client:
            if await self._speaks(client) is Transport.SSE:
                async with open_sse(self._server, self._config.url, client) as old:
                    if self._config.transport is not Transport.SSE:
                        old.note(_FELL_BACK)
                    yield old
                return
            link = HttpLink(self._server, self._config.url, client)
            try:
                yield link
            finally:
                await link.say_goodbye()
                await link.close()

    async def _speaks(self, client: httpx2.AsyncClient) -> Transport:
        if self._config.transport is Transport.SSE or self._config.skip_preflight:
            return self._config.transport
        if self._way is None:
            self._way = await look(self._server, self._config.url, client)
        return self._way
