"""A time limit that stands still while a person decides."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType


class Deadline:
    """`async with Deadline(seconds)` raises TimeoutError when the running time is used up.

    `paused()` may be entered from any task, also several times at once; the time limit stands
    still as long as at least one is inside.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._scope = asyncio.timeout(None)
        self._pauses = 0
        self._entered = False

    async def __aenter__(self) -> "Deadline":
        await self._scope.__aenter__()
        self._entered = True
        if not self._pauses:
            self._resume()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._entered = False
        return await self._scope.__aexit__(kind, error, trace)

    @property
    def is_paused(self) -> bool:
        """True while somebody is inside `paused()`."""
        return self._pauses > 0

    @contextmanager
    def paused(self) -> Generator[None]:
        """Hold the time limit still inside the block."""
        self._pauses += 1
        if self._pauses == 1 and self._entered and not self._scope.expired():
            self._suspend()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses and self._entered and not self._scope.expired():
                self._resume()

    def _suspend(self) -> None:
        when = self._scope.when()
        if when is not None:
            self._left = max(0.0, when - asyncio.get_running_loop().time())
        self._scope.reschedule(None)

    def _resume(self) -> None:
        self._scope.reschedule(asyncio.get_running_loop().time() + self._left)
