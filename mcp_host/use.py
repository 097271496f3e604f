"""Who uses a server now, and when somebody did last. Waits for nobody but its users."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from gateway.ports import Clock


class Use:
    """The users of one server; `last` is the monotonic time when the latest of them left."""

    def __init__(self, clock: Clock) -> None:
        self.last = clock.monotonic()
        self._clock = clock
        self._users = 0
        self._free = asyncio.Event()
        self._free.set()

    @property
    def busy(self) -> bool:
        """True while at least one user is inside `held`."""
        return self._users > 0

    @contextmanager
    def held(self) -> Generator[None]:
        """Be a user inside the block."""
        self._users += 1
        self._free.clear()
        try:
            yield
        finally:
            self._users -= 1
            self.last = self._clock.monotonic()
            if not self._users:
                self._free.set()

    async def free(self) -> None:
        """Return when nobody uses the server."""
        await self._free.wait()
