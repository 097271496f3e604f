"""Tells readers of a store of every commit: as its gateway says, and while none runs as the files change."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from gateway.domain.errors import ControlError

if TYPE_CHECKING:
    from gateway.control.client import SocketClient
    from store.readers import OpenReaders

logger = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 2.0
"""Between looks for a gateway; meanwhile commits are seen in the files."""


@asynccontextmanager
async def telling(client: "SocketClient", readers: "OpenReaders") -> AsyncGenerator[None]:
    """Ring for each commit until the block ends."""
    told = asyncio.create_task(_tell(client, readers), name="bridge:commits")
    try:
        yield
    finally:
        told.cancel()
        await asyncio.wait([told])


async def _tell(client: "SocketClient", readers: "OpenReaders") -> None:
    async with asyncio.TaskGroup() as tasks:
        watching: asyncio.Task[None] | None = None
        while True:
            if watching is None or watching.done():
                watching = tasks.create_task(readers.watch(), name="bridge:files")
            if client.is_there and await _follow(client, readers.notify, watching):
                watching = None
                continue
            await asyncio.sleep(AGAIN_SECONDS)


async def _follow(
    client: "SocketClient", notify: Callable[[], None], watching: asyncio.Task[None]
) -> bool:
    """Ring as the gateway says; True when it said anything, and has ended since."""
    heard = False
    try:
        async for _ in client.events():
            if not heard:
                heard = True
                watching.cancel()
                logger.info("the gateway tells of what happens")
            notify()
    except ControlError as error:
        logger.debug("no hints from a gateway: %s", error)
    if heard:
        logger.info("the gateway tells of nothing more")
    return heard
