"""Watches over a live session: does it still answer, is it still used, is it too old.

Tells the owner by notes and ends nothing itself.
"""

import asyncio
from collections.abc import Callable
from typing import Final, assert_never

from mcp import MCPError

from gateway.domain.errors import ServerUnavailable
from gateway.ports import Clock
from mcp_host.mailbox import Note
from mcp_host.server_config import ServerConfig
from mcp_host.session import Era, HostSession
from mcp_host.use import Use

ANSWER_SECONDS: Final = 20.0
"""How long a server may take to say that it is there."""

MISSES: Final = 2
"""Questions in a row that stay without an answer before a server counts as gone."""

TELL_AGAIN_SECONDS: Final = 1.0

Tell = Callable[[Note], None]


async def keep_alive(
    session: HostSession, config: ServerConfig, *, use: Use, clock: Clock, tell: Tell
) -> None:
    """Ask the server at its interval whether it is there, unless it works for somebody."""
    limit = min(ANSWER_SECONDS, config.connect_timeout)
    misses = 0
    while True:
        if not misses:
            await clock.sleep(config.keepalive_interval)
        if use.busy or await _answers(session, limit):
            misses = 0
            continue
        misses += 1
        if misses < MISSES:
            continue
        if not use.busy:
            tell(Note.UNANSWERED)
            return
        # A call that began meanwhile has its own time limit, and may be why it is deaf.
        misses = 0


async def _answers(session: HostSession, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await session.request(_question(session.era))
    except TimeoutError:
        return False
    except (MCPError, ServerUnavailable):
        # "I do not know that" is an answer too, and a broken link tells of itself.
        pass
    return True


def _question(era: Era) -> str:
    match era:
        case Era.LEGACY:
            return "ping"
        case Era.MODERN:
            return "server/discover"
        case _:
            assert_never(era)


async def watch_limits(config: ServerConfig, *, use: Use, clock: Clock, tell: Tell) -> None:
    """Say when the process was idle or alive for too long, never while somebody uses it."""
    idle, lifetime = config.idle_timeout_seconds, config.max_lifetime_seconds
    if not idle and not lifetime:
        return
    started = clock.monotonic()
    # Only use from now on counts: what the server did before is another process's.
    while True:
        now = clock.monotonic()
        left = [
            *([started + lifetime - now] if lifetime else ()),
            *([max(started, use.last) + idle - now] if idle else ()),
        ]
        if min(left) > 0:
            await clock.sleep(min(left))
            continue
        await use.free()
        now = clock.monotonic()
        if lifetime and now >= started + lifetime:
            tell(Note.OLD)
        elif idle and now >= max(started, use.last) + idle:
            tell(Note.UNUSED)
        else:
            continue
        # Somebody may have come before the owner read that; then it is told again.
        await clock.sleep(TELL_AGAIN_SECONDS)
