"""How the bridge is told to end, on whatever it is served."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def ending_signals() -> Generator[asyncio.Future[signal.Signals]]:
    """Yield what has the first SIGINT or SIGTERM once it came; neither ends the process itself."""
    loop = asyncio.get_running_loop()
    received: asyncio.Future[signal.Signals] = loop.create_future()

    def receive(which: signal.Signals) -> None:
        if not received.done():
            received.set_result(which)

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, receive, number)
    try:
        yield received
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
