"""The bridge on standard input and output: one client, which started this process."""

import asyncio
import logging
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

logger = logging.getLogger(__name__)

ORPHAN_SECONDS: Final = 5.0
"""Between looks whether whoever started us is still there: its end may leave our input open."""


async def serve_stdio(server: Server[dict[str, Any]]) -> signal.Signals | None:
    """Answer until the input ends; return the signal when one ended it before.

    After a signal a thread may still wait for input that never comes: the process has to leave
    without it.
    """
    with _signals() as ending:
        serving = asyncio.create_task(_serve(server), name="bridge:stdio")
        orphan = asyncio.create_task(_orphaned(), name="bridge:parent")
        tasks: set[asyncio.Task[Any]] = {serving, ending, orphan}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        orphan.cancel()
        if serving.done():
            ending.cancel()
            await serving
            return None
        if ending.done():
            return ending.result()
        logger.warning("whoever started this process is gone")
        ending.cancel()
        return signal.SIGHUP


async def _serve(server: Server[dict[str, Any]]) -> None:
    # A client that leaves without reading its answers is no fault of ours.
    with suppress(BrokenPipeError):
        try:
            async with stdio_server() as (incoming, outgoing):
                options = server.create_initialization_options()
                await server.run(incoming, outgoing, options)
        except BaseExceptionGroup as group:
            _, others = group.split(BrokenPipeError)
            if others is not None:
                raise others from None


async def _orphaned() -> None:
    parent = os.getppid()
    # Nothing tells of it: this is a look now and then.
    while os.getppid() == parent:  # noqa: ASYNC110
        await asyncio.sleep(ORPHAN_SECONDS)


@contextmanager
def _signals() -> Generator[asyncio.Task[signal.Signals]]:
    loop = asyncio.get_running_loop()
    received: asyncio.Future[signal.Signals] = loop.create_future()

    def receive(which: signal.Signals) -> None:
        if not received.done():
            received.set_result(which)

    async def wait() -> signal.Signals:
        return await received

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, receive, number)
    try:
        yield asyncio.create_task(wait(), name="bridge:signals")
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
