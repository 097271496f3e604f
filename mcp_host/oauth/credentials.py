"""Signs in as the client of the configuration: no person is needed (RFC 6749, section 4.4)."""

from dataclasses import replace

from gateway.domain.errors import ToolHostError
from mcp_host.oauth.config import OAuthConfig
from mcp_host.oauth.discovery import Found
from mcp_host.oauth.exchange import Grant, TokenEndpoint
from mcp_host.oauth.identity import own_client
from mcp_host.oauth.scopes import joined_scopes
from mcp_host.oauth.tokens import Tokens


async def granted_to_client(
    server: str,
    config: OAuthConfig,
    found: Found,
    endpoint: TokenEndpoint,
    before: Tokens | None,
) -> Grant:
    """Return a token for the client itself, and nothing to renew it by: it can always ask anew.

    Raises:
        ToolHostError: The configuration names no client, or the endpoint says no.
        ServerUnavailable: The endpoint gave no word on it.
    """
    if not config.client_id:
        raise ToolHostError(server, "flow: client_credentials needs oauth.client_id")
    lacked = before.wanted_scope if before is not None else None
    scope = joined_scopes(config.scope or " ".join(found.scopes or ()), lacked)
    grant = await endpoint.by_credentials(own_client(config), scope)
    return replace(grant, refresh_token=None)
