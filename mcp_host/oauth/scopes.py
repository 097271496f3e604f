"""Which scopes a login asks for: what was given or lacked before, and what the server names.

MCP's order (authorization, scope selection): the challenge, the resource's metadata, the
authorization server's own, else none. A step-up keeps what there was.
"""

from typing import Final

from mcp_host.oauth.discovery import Challenge, Found
from mcp_host.oauth.tokens import Tokens

OFFLINE: Final = "offline_access"


def joined_scopes(before: str | None, new: str | None) -> str | None:
    """Return both, each scope once, those of before first; None for none."""
    names = dict.fromkeys([*(before or "").split(), *(new or "").split()])
    return " ".join(names) or None


def scopes_to_ask(
    configured: str, found: Found, challenge: Challenge | None, before: Tokens | None
) -> str | None:
    """Return the scopes that a login asks for; None leaves them to the server."""
    named = configured or (challenge.scope if challenge is not None else None)
    supported = found.server.scopes_supported
    if named is None and found.scopes is not None:
        named = " ".join(found.scopes)
    if named is None and supported is not None:
        named = " ".join(supported)
    if before is not None and before.wanted_scope:
        named = joined_scopes(joined_scopes(before.scope, named), before.wanted_scope)
    if named and supported is not None and OFFLINE in supported:
        named = joined_scopes(named, OFFLINE)
    return named or None
