"""The control socket's HTTP protocol: refuses strangers, too many connections and slow requests."""

import asyncio
import logging
import os
from typing import Any, Final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from gateway.control.peer import peer_of

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 64
REQUEST_SECONDS: Final = 5.0
"""From the first byte expected to the last one of a request."""

_FULL_BODY: Final = b'{"error": "the gateway has too many connections", "code": "rate_limited"}'
_FULL: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_FULL_BODY), _FULL_BODY)
)


class ControlProtocol(H11Protocol):
    """One connection; `scope["state"]["peer"]` says whose it is."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._too_slow: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Take a connection of our own user; anyone else's is closed without an answer."""
        super().connection_made(transport)
        try:
            peer = peer_of(transport.get_extra_info("socket"))
        except OSError as error:
            logger.warning("a connection does not say whose it is: %s", error)
            transport.abort()
            return
        if peer.uid != os.getuid():
            logger.warning("a connection of user %d was refused", peer.uid)
            transport.abort()
            return
        if len(self.connections) > MAX_CONNECTIONS:
            logger.warning("more than %d connections: one was refused", MAX_CONNECTIONS)
            transport.write(_FULL)
            transport.close()
            return
        self.app_state = {**self.app_state, "peer": peer}
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and give an unfinished request a bounded time."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        unfinished = self.conn.their_state in {h11.IDLE, h11.SEND_BODY}
        if not unfinished or self.transport.is_closing():
            self._unwatch()
        elif self._too_slow is None:
            self._too_slow = self.loop.call_later(REQUEST_SECONDS, self._give_up)

    def _unwatch(self) -> None:
        if self._too_slow is not None:
            self._too_slow.cancel()
            self._too_slow = None

    def _give_up(self) -> None:
        self._too_slow = None
        if not self.transport.is_closing():
            logger.warning("a request that did not come to its end was dropped")
            self.transport.abort()
