"""Socket Mode: two connections at a time, each replaced as soon as it is lost or goes silent.

An own watch over the SDK's client, whose reconnecting tells nobody that it fails.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

import aiohttp
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp

from adapters.slack.client import Client, quiet
from adapters.slack.ids import PLATFORM
from adapters.slack.receiving import Reception
from adapters.slack.recovery import Recovery
from adapters.slack.watchdog import Watchdog
from gateway.domain.errors import AdapterError, DeliveryUnsure

logger = logging.getLogger(__name__)

SOCKETS: Final = 2
"""While one is replaced the other one is told; Slack allows ten."""
PING_SECONDS: Final = 10.0
"""Between pings; a connection that does not answer one within half of it is closed."""
CONNECT_SECONDS: Final = 15.0
LOOK_SECONDS: Final = 0.5
"""Between looks whether a connection still stands."""
MISSES: Final = 3
"""Looks in a row at which it does not stand."""
HEALTHY_SECONDS: Final = 20.0
"""A connection that stood for so long counts as one that worked."""


class Sockets:
    """The connections of one app."""

    def __init__(
        self,
        reception: Reception,
        app: AsyncApp,
        client: Client,
        watch: Watchdog,
        *,
        token: str,
    ) -> None:
        self._reception = reception
        self._app = app
        self._client = client
        self._watch = watch
        self._token = token
        self._clock = reception.clock
        self._open = 0

    async def run(self) -> None:
        """Keep them open until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(SOCKETS):
                tasks.create_task(self._keep(number), name=f"slack:socket:{number}")
            tasks.create_task(self._watch.run(), name="slack:watchdog")

    async def _keep(self, number: int) -> None:
        recovery = Recovery()
        while True:
            began = self._clock.monotonic()
            try:
                async with self._connected() as handler:
                    self._opened()
                    logger.debug("socket %d of Slack's is open", number)
                    try:
                        await self._until_lost(handler)
                    finally:
                        self._lost()
            except AdapterError as error:
                # One that stands is enough to receive.
                told = () if self._open else self._reception.connections
                await self._clock.sleep(recovery.failed(error, told))
                continue
            if self._clock.monotonic() - began >= HEALTHY_SECONDS:
                recovery.worked()
            else:
                broken = DeliveryUnsure(PLATFORM, "its connections break soon")
                await self._clock.sleep(recovery.failed(broken, ()))

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[AsyncSocketModeHandler]:
        """Open a connection; it is closed with the block."""
        address = await self._client.socket_address()
        handler: Any = AsyncSocketModeHandler(
            self._app,
            self._token,
            logger=quiet,
            web_client=self._client.web,
            ping_interval=PING_SECONDS,
        )
        socket = handler.client
        # The SDK would try again for ever, and say nothing; here every failure is seen.
        socket.default_auto_reconnect_enabled = socket.auto_reconnect_enabled = False
        socket.wss_uri = address
        try:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await handler.connect_async()
            except (TimeoutError, aiohttp.ClientError, OSError) as error:
                raise DeliveryUnsure(PLATFORM, "its socket does not open") from error
            yield cast("AsyncSocketModeHandler", handler)
        finally:
            with suppress(aiohttp.ClientError, OSError, RuntimeError):
                await handler.close_async()

    async def _until_lost(self, handler: AsyncSocketModeHandler) -> None:
        # Its client types almost nothing.
        client: Any = handler.client
        generation = self._watch.generation
        misses = 0
        while misses < MISSES:
            # The SDK replaces a connection by itself when Slack asks it to.
            misses = 0 if await client.is_connected() else misses + 1
            if self._watch.generation != generation:
                return
            if misses:
                await self._clock.sleep(LOOK_SECONDS)
                continue
            for connection in self._reception.connections:
                connection.heard()
            await self._clock.sleep(LOOK_SECONDS)

    def _opened(self) -> None:
        self._open += 1
        if self._open == 1:
            # Nobody listened until now.
            self._watch.was_deaf()
        for connection in self._reception.connections:
            connection.heard()

    def _lost(self) -> None:
        self._open -= 1
        if self._open == 0:
            for connection in self._reception.connections:
                connection.degraded("the connections to Slack are lost; new ones are opened")
