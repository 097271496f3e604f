"""What the links over the network share: one queue inwards, and an exchange for each message out.

An exchange runs in a task of the link. What breaks it is raised where its message was sent, and
touches neither the others nor the connection's owner.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Final, Self

import anyio
import httpx2
import mcp_types as wire
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage

from gateway.domain.errors import NeedsLogin, ServerUnavailable, ToolHostError
from mcp_host.transports.base import LinkStream
from mcp_host.transports.failures import unavailable
from mcp_host.transports.messages import parse

logger = logging.getLogger(__name__)

QUEUED_MESSAGES: Final = 16
REFUSALS_TO_END: Final = 2
"""So often in a row must the server not be reached, with nothing in flight, to count as gone."""

NOTICE_SECONDS: Final = 1.0

CANCELLED: Final = "notifications/cancelled"


class NetworkLink:
    """A link (`transports.base.Link`) whose messages are HTTP requests; subclasses exchange them."""

    def __init__(self, server: str, url: str) -> None:
        self.server = server
        self.url = url
        self._inwards, arriving = anyio.create_memory_object_stream[SessionMessage | Exception](
            QUEUED_MESSAGES
        )
        self.incoming = _Incoming(arriving)
        self.outgoing = _Outgoing(self)
        self.ignored = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests = 0
        self._refusals = 0
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._why = ""
        self._notes: list[str] = []
        self.needs_person = False

    @property
    def ended(self) -> bool:
        """True once nothing can be sent or received any more."""
        return self._over.done()

    @property
    def busy(self) -> bool:
        """True while a request has no answer yet."""
        return self._requests > 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know about this link."""
        ignored = (f"{self.ignored} event(s) it sent are no messages",) if self.ignored else ()
        return (*self._notes, *ignored)

    @property
    def last_words(self) -> str:
        """Nothing: over the network there is no channel beside the protocol."""
        return ""

    async def why_ended(self) -> str:
        """Say why the link is down."""
        return self._why or "its connection ended"

    def note(self, text: str) -> None:
        """Add something a person should know."""
        self._notes.append(text)

    def end(self, why: str) -> None:
        """Take the link down: what waits for an answer learns it from the session."""
        if not self.ended:
            self._why = why
            self._over.set_result(None)
            self._inwards.close()

    def end_sign_in(self, error: NeedsLogin) -> None:
        """Take the link down: nothing goes through it before a person has signed in again."""
        self.needs_person = True
        self.end(error.problem)

    async def close(self) -> None:
        """End the link and everything that runs for it."""
        self.end("its connection was closed")
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self.incoming.discard()

    # --- for the subclasses ---------------------------------------------------------

    async def request(self, message: wire.JSONRPCRequest, headers: dict[str, str]) -> None:
        """Exchange a request; its answer is delivered, unless this raises."""
        raise NotImplementedError

    async def tell(self, message: wire.JSONRPCMessage, headers: dict[str, str]) -> None:
        """Send a message that has no answer."""
        raise NotImplementedError

    async def deliver(self, message: wire.JSONRPCMessage) -> None:
        """Hand a message to the session; waits while it is behind."""
        try:
            await self._inwards.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.debug("server %s: a message came after its session", self.server)

    def read_event(self, event: httpx2.ServerSentEvent) -> wire.JSONRPCMessage | None:
        """Return the message in an event, None when it carries none."""
        if event.event != "message" or not event.data:
            return None
        message = parse(event.data.encode("utf-8", "surrogatepass"))
        if message is None:
            self.ignored += 1
        return message

    def spawn(self, work: Coroutine[object, object, None], *, name: str) -> asyncio.Task[None]:
        """Run something that ends with the link."""
        task = asyncio.create_task(work, name=f"{name}:{self.server}")
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def reached(self) -> None:
        """Note that the server is there."""
        self._refusals = 0

    # --- inside ---------------------------------------------------------------------

    async def send(self, item: SessionMessage) -> None:
        """Send what the session writes; see `transports.base.Link`."""
        message = item.message
        headers = _headers_of(item)
        if isinstance(message, wire.JSONRPCRequest):
            await self._send_request(message, headers)
        elif self.ended:
            raise anyio.BrokenResourceError
        elif isinstance(message, wire.JSONRPCNotification) and message.method == CANCELLED:
            # Whoever was cancelled must not wait for the server to hear of it.
            self.spawn(self._tell(message, headers), name="cancel")
        else:
            await self._tell(message, headers)

    async def _send_request(self, message: wire.JSONRPCRequest, headers: dict[str, str]) -> None:
        if self.ended:
            raise ServerUnavailable(self.server, await self.why_ended(), sent=False)
        exchange = self.spawn(self._exchange(message, headers), name="request")
        try:
            await asyncio.wait({exchange, self._over}, return_when=asyncio.FIRST_COMPLETED)
            if exchange.done():
                exchange.result()
        except ServerUnavailable:
            if self.ended:
                # Whoever tries again must find the session closed, not this one once more.
                await self.incoming.left(NOTICE_SECONDS)
            raise
        finally:
            exchange.cancel()

    async def _exchange(self, message: wire.JSONRPCRequest, headers: dict[str, str]) -> None:
        self._requests += 1
        try:
            await self.request(message, headers)
        except NeedsLogin as error:
            self.end_sign_in(error)
            raise
        except httpx2.TransportError as error:
            failure = unavailable(self.server, self.url, error)
            if not failure.sent:
                self._refused(failure.problem)
            raise failure from None
        finally:
            self._requests -= 1

    async def _tell(self, message: wire.JSONRPCMessage, headers: dict[str, str]) -> None:
        try:
            await self.tell(message, headers)
        except NeedsLogin as error:
            self.end_sign_in(error)
            raise anyio.BrokenResourceError from None
        except ToolHostError as error:
            logger.debug("%s", error)
            raise anyio.BrokenResourceError from None
        except httpx2.TransportError as error:
            logger.debug("server %s: %s", self.server, unavailable(self.server, self.url, error))
            raise anyio.BrokenResourceError from None

    def _refused(self, why: str) -> None:
        self._refusals += 1
        # Only its own request fails while others are on their way: it may just be busy.
        if self._refusals >= REFUSALS_TO_END and self._requests <= 1:
            self.end(why)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Looked at here too: whoever waited for it may be gone.
            task.exception()


class _Incoming(LinkStream):
    """The session's way in; knows when the session has left it."""

    def __init__(self, stream: MemoryObjectReceiveStream[SessionMessage | Exception]) -> None:
        self._stream = stream
        self._left = asyncio.Event()

    async def receive(self) -> SessionMessage | Exception:
        return await self._stream.receive()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self._stream.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def left(self, seconds: float) -> None:
        """Return when the session has noticed the end, at the latest after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._left.wait()
        except TimeoutError:
            pass

    def discard(self) -> None:
        """Let go of what is still in it."""
        self._stream.close()

    async def aclose(self) -> None:
        # Without a pause: the session is closed in the same step, before anybody else runs.
        self._stream.close()
        self._left.set()


class _Outgoing(LinkStream):
    """The session's way out."""

    def __init__(self, link: NetworkLink) -> None:
        self._link = link

    async def send(self, item: SessionMessage, /) -> None:
        await self._link.send(item)


def _headers_of(item: SessionMessage) -> dict[str, str]:
    """Return the headers that the session stamped on a message."""
    stamped = getattr(item.metadata, "headers", None)
    return dict(stamped) if stamped else {}
