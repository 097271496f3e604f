"""Loads large packages beside the event loop, one at a time in the whole process.

Two threads that import packages with circular imports at once may each find one half loaded.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_ONE_AT_A_TIME: Final = threading.Lock()


async def load(run: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call what imports a package, in a thread, and return what it returns or raises."""

    def alone() -> T:
        with _ONE_AT_A_TIME:
            return run(*args, **kwargs)

    return await asyncio.to_thread(alone)
