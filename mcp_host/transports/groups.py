"""Ending a process group: ask, insist, and never wait without a bound."""

import asyncio
import os
import signal
from typing import Final

EXIT_SECONDS: Final = 2.0
TERM_SECONDS: Final = 1.0
KILL_SECONDS: Final = 0.5
POLL_SECONDS: Final = 0.01


async def end_group(group: int, *, leader_exited: asyncio.Event) -> None:
    """End every process of the group; its leader has been asked to by the end of its input.

    The group is signalled also when the leader leaves in time: what it started may stay.
    These waits are real time whatever the clock, since real processes are waited for.
    """
    try:
        async with asyncio.timeout(EXIT_SECONDS):
            await leader_exited.wait()
    except TimeoutError:
        pass
    for sign, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        if not _signal(group, sign) or await _gone(group, seconds):
            return


def _signal(group: int, sign: int) -> bool:
    try:
        os.killpg(group, sign)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _gone(group: int, seconds: float) -> bool:
    # A zombie that nobody reaps keeps its group alive: hence the bound after SIGKILL too.
    for _ in range(round(seconds / POLL_SECONDS)):
        if not _signal(group, 0):
            return True
        await asyncio.sleep(POLL_SECONDS)
    return False
