"""Which protocol era a server speaks: what is tried, in which order, and what a refusal means."""

from typing import Final, assert_never

import mcp_types as wire
from mcp import MCPError

from mcp_host.server_config import Protocol
from mcp_host.session import Era, HostSession

_MODERN_REFUSALS: Final = frozenset(
    {
        wire.UNSUPPORTED_PROTOCOL_VERSION,
        wire.HEADER_MISMATCH,
        wire.MISSING_REQUIRED_CLIENT_CAPABILITY,
    }
)
"""Answers to `server/discover` that only a modern server gives: a handshake would not help."""


async def negotiate(session: HostSession, protocol: Protocol, *, remembered: Era | None) -> Era:
    """Agree with the server on an era and return it; the one it spoke last time goes first.

    Raises:
        MCPError: It refused everything we may try, or the link broke.
        RuntimeError: It speaks no version that we know.
    """
    first, second = _order(protocol, remembered)
    try:
        return await _agree(session, first)
    except (MCPError, RuntimeError) as error:
        if second is None or not _may_try_other(error, tried=first):
            raise
    return await _agree(session, second)


def _order(protocol: Protocol, remembered: Era | None) -> tuple[Era, Era | None]:
    match protocol:
        case Protocol.LEGACY:
            return Era.LEGACY, None
        case Protocol.AUTO:
            first = remembered or Era.LEGACY
        case Protocol.STATELESS:
            first = remembered or Era.MODERN
        case _:
            assert_never(protocol)
    return first, Era.MODERN if first is Era.LEGACY else Era.LEGACY


async def _agree(session: HostSession, era: Era) -> Era:
    match era:
        case Era.LEGACY:
            await session.initialize()
        case Era.MODERN:
            await session.discover()
        case _:
            assert_never(era)
    return era


def _may_try_other(error: MCPError | RuntimeError, *, tried: Era) -> bool:
    if not isinstance(error, MCPError):
        return True
    if error.code == wire.CONNECTION_CLOSED:
        # Nobody is left to talk to. A server cannot mean this code: it is JSON-RPC's own range.
        return False
    return tried is Era.LEGACY or error.code not in _MODERN_REFUSALS
