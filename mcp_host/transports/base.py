"""What every transport gives the owner of a connection, however it reaches the server."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage


class Link(Protocol):
    """One open way to a server; closed by leaving the context that gave it.

    `outgoing.send` of a request raises `ServerUnavailable(sent=False)` when nothing of it can
    have reached the server.
    """

    @property
    def incoming(self) -> "ReadStream[SessionMessage | Exception]": ...

    @property
    def outgoing(self) -> "WriteStream[SessionMessage]": ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know about this link, such as ignored lines."""
        ...

    @property
    def last_words(self) -> str:
        """What the server said last beside the protocol, or ""."""
        ...

    @property
    def needs_person(self) -> bool:
        """True when the link is down and only a person can get it up again."""
        ...

    async def why_ended(self) -> str:
        """Say why the link is down, as precisely as a short wait allows."""
        ...


class LinkStream:
    """One direction of a link, as the session holds it."""

    async def aclose(self) -> None:
        """Let go of what is the direction's own: nothing. Who opened the link ends it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        await self.aclose()
        return None


OpenLink = Callable[[], AbstractAsyncContextManager[Link]]
"""Opens a new link; raises `ServerUnavailable` when trying again may help, else `ToolHostError`."""
