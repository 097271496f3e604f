"""The bridge on standard input and output: one client, which started this process."""

import asyncio
import logging
import os
import signal
from typing import Any, Final

import anyio
from mcp.server.lowlevel import Server

from mcp_host.bridge.lingering import Exchange
from mcp_host.bridge.pipes import open_pipes
from mcp_host.bridge.signals import ending_signals

logger = logging.getLogger(__name__)

ORPHAN_SECONDS: Final = 2.0
"""Between looks whether whoever started us is still there: its end may leave our input open."""
LEAVING_SECONDS: Final = 0.3
INTERRUPTED: Final = 130
"""The exit code after SIGINT."""


Experimental = dict[str, dict[str, Any]]
"""Capabilities that the protocol does not name."""


async def serve_stdio(
    server: Server[dict[str, Any]], *, experimental: Experimental | None = None
) -> signal.Signals | None:
    """Answer until the input ends; return the signal when one ended it before.

    Calls under way are given up then: they hold nothing that could be lost.
    """
    with ending_signals() as received:
        serving = asyncio.create_task(_serve(server, experimental), name="bridge:stdio")
        ended = asyncio.create_task(_told_to_end(received), name="bridge:ending")
        await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            ended.cancel()
            await serving
            return None
        which = ended.result()
        serving.cancel()
        _, waiting = await asyncio.wait({serving}, timeout=LEAVING_SECONDS)
        if waiting:
            # A thread waits for the next line of a terminal, and nothing but a line ends that.
            os._exit(INTERRUPTED if which is signal.SIGINT else 0)
        return which


async def _serve(server: Server[dict[str, Any]], experimental: Experimental | None) -> None:
    try:
        async with open_pipes() as (incoming, outgoing):
            exchange = Exchange(incoming, outgoing)
            options = server.create_initialization_options(experimental_capabilities=experimental)
            await server.run(exchange.incoming, exchange.outgoing, options)
    except BaseExceptionGroup as group:
        # A client that leaves without reading its answers is no fault of ours.
        _, others = group.split((BrokenPipeError, anyio.BrokenResourceError))
        if others is not None:
            raise others from None
    except anyio.BrokenResourceError:
        return


async def _told_to_end(received: asyncio.Future[signal.Signals]) -> signal.Signals:
    parent = os.getppid()
    while not received.done():
        await asyncio.wait({received}, timeout=ORPHAN_SECONDS)
        if os.getppid() != parent:
            logger.warning("whoever started this process is gone")
            return signal.SIGHUP
    return received.result()
