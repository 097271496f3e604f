"""Keeps an answer of the service within bounds: the library reads each as a whole."""

from collections.abc import AsyncIterator
from typing import Any, Final

import httpx

MAX_ANSWER_BYTES: Final = 16_000_000
"""More than a full batch of updates takes."""


def bounded_client() -> dict[str, Any]:
    """Return what to tell the library's client: to ask for nothing packed, and to stop in time."""
    return {"headers": {"accept-encoding": "identity"}, "event_hooks": {"response": [_bound]}}


async def _bound(answer: httpx.Response) -> None:
    """Let an answer end with an error once it is too large, before any of it is read.

    Raises:
        httpx.RemoteProtocolError: It is packed, and might unpack to anything.
    """
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise httpx.RemoteProtocolError("the answer came packed", request=answer.request)
    if isinstance(answer.stream, httpx.AsyncByteStream):
        answer.stream = _Bounded(answer.stream, answer.request)


class _Bounded(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, request: httpx.Request) -> None:
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MAX_ANSWER_BYTES:
                raise httpx.RemoteProtocolError("the answer is too large", request=self._request)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
