"""Lets what was asked before the input ended be answered: a client may write its calls and close."""

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import anyio
import mcp_types as wire
from mcp.shared.message import SessionMessage

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

CANCELLED: Final = "notifications/cancelled"
LINGER_SECONDS: Final = 0.5
"""After the end of the input; a wait for events is not worth more."""


class Exchange:
    """Both directions of a connection, and which requests of the client are not answered yet."""

    def __init__(
        self,
        incoming: "ReadStream[SessionMessage | Exception]",
        outgoing: "WriteStream[SessionMessage]",
    ) -> None:
        self._open: set[wire.RequestId] = set()
        self._all_answered = asyncio.Event()
        self.incoming = _Incoming(self, incoming)
        self.outgoing = _Outgoing(self, outgoing)

    def asked(self, message: wire.JSONRPCMessage) -> None:
        """Take note of what came in; what is cancelled gets no answer."""
        if isinstance(message, wire.JSONRPCRequest):
            self._open.add(message.id)
        elif isinstance(message, wire.JSONRPCNotification) and message.method == CANCELLED:
            self._open.discard((message.params or {}).get("requestId", ""))

    def answered(self, message: wire.JSONRPCMessage) -> None:
        """Take note of what goes out."""
        if isinstance(message, wire.JSONRPCResponse | wire.JSONRPCError) and message.id is not None:
            self._open.discard(message.id)
            if not self._open:
                self._all_answered.set()

    async def settled(self) -> None:
        """Return when everything is answered, or not soon."""
        if not self._open:
            return
        self._all_answered.clear()
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                await self._all_answered.wait()
        except TimeoutError:
            return


class _Incoming:
    def __init__(self, exchange: Exchange, inner: "ReadStream[SessionMessage | Exception]") -> None:
        self._exchange = exchange
        self._inner = inner

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            item = await self._inner.__anext__()
        except StopAsyncIteration:
            await self._exchange.settled()
            raise
        if isinstance(item, SessionMessage):
            self._exchange.asked(item.message)
        return item

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


class _Outgoing:
    def __init__(self, exchange: Exchange, inner: "WriteStream[SessionMessage]") -> None:
        self._exchange = exchange
        self._inner = inner

    async def send(self, item: SessionMessage, /) -> None:
        await self._inner.send(item)
        self._exchange.answered(item.message)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)
