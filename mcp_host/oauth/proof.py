"""Shows that a server takes a stored sign-in where it counts: some list their tools to anybody."""

import asyncio
from typing import TYPE_CHECKING, Final

from mcp import MCPError

from gateway.domain.errors import ServerUnavailable

if TYPE_CHECKING:
    from mcp_host.connection import Connection

NO_TOOL: Final = "hermes_sign_in_check"
"""What no server has: whatever it says of it, it did let us call, and nothing has run."""

PROOF_SECONDS: Final = 30.0


async def show_that_calls_are_let_by(connection: "Connection") -> None:
    """Make one call that can have no effect, and return when the server has had a word on it.

    Raises:
        NeedsLogin: It refuses the sign-in.
        NeedsScope: It wants one that allows more.
        ServerUnavailable: There was no word, or a refusal that is none of OAuth's.
    """
    session = await connection.ready()
    try:
        async with asyncio.timeout(PROOF_SECONDS):
            await session.request("tools/call", {"name": NO_TOOL, "arguments": {}})
    except TimeoutError:
        problem = f"a call had no answer within {PROOF_SECONDS:g} s"
        raise ServerUnavailable(connection.server, problem, sent=True) from None
    except MCPError:
        if session.closed:
            problem = await session.why_closed()
            raise ServerUnavailable(connection.server, problem, sent=True) from None
