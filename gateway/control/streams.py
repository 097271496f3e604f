"""Answers that go on: one JSON object a line, until the caller leaves or the gateway ends."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import ExitStack
from typing import Any, Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

PING_SECONDS: Final = 15.0
MEDIA_TYPE: Final = "application/x-ndjson"


class Lines(StreamingResponse):
    """A stream with what it holds; that is let go of however the stream ends."""

    def __init__(
        self, lines: AsyncIterator[Mapping[str, Any]], *, held: ExitStack | None = None
    ) -> None:
        super().__init__(_encoded(lines), media_type=MEDIA_TYPE)
        self._held = held or ExitStack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        with self._held:
            await super().__call__(scope, receive, send)


async def first_of(*waits: Coroutine[Any, Any, object], seconds: float) -> bool:
    """Return when the first of them is over, or after that long; say whether one was.

    Raises:
        Exception: What the first one raised.
    """
    tasks = {asyncio.ensure_future(wait) for wait in waits}
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return bool(done)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _encoded(lines: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[bytes]:
    async for line in lines:
        yield json.dumps(line).encode("ascii") + b"\n"
