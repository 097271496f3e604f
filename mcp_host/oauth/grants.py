"""What every way of signing in starts from, and what it ends with."""

from dataclasses import dataclass

from mcp_host.oauth.discovery import Found
from mcp_host.oauth.exchange import Grant
from mcp_host.oauth.tokens import Client, Tokens
from mcp_host.server_config import ServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A sign-in to one server; `before` is what its token file held."""

    server: str
    config: ServerConfig
    found: Found
    scope: str | None
    before: Tokens | None
    document_url: str

    def known_client(self, redirect_uri: str | None) -> Client | None:
        """Return the client of the sign-in before when it can be used once more."""
        if self.before is None or not (self.before.access_token or self.before.refresh_token):
            # A registration that never led to anything may be the reason.
            return None
        client = self.before.client
        if client is None or client.issuer != self.found.server.issuer:
            return None
        return client if client.redirect_uri == redirect_uri else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A grant, and the client that it was given to."""

    client: Client
    grant: Grant
