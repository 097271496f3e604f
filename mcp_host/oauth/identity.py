"""Who we are to an authorization server: a client of its own, our published document, or one registered now.

In that order; nothing is registered where no place for it is advertised (RFC 7591).
"""

from enum import Enum, auto
from typing import Final

from gateway.domain.errors import ServerUnavailable, ToolHostError
from mcp_host.oauth.config import OAuthConfig, client_name
from mcp_host.oauth.discovery import AuthorizationServer, Found
from mcp_host.oauth.exchange import DEVICE_GRANT
from mcp_host.oauth.fetch import Fetcher
from mcp_host.oauth.tokens import Client
from mcp_host.transports.failures import shown_url

REMEDY: Final = "register a client there and set oauth.client_id (and oauth.client_secret)"

_METHODS: Final = ("none", "client_secret_post", "client_secret_basic")


class Identity(Enum):
    """`OWN`: in the configuration. `DOCUMENT`: CIMD. `REGISTERED`: by the server, on our request."""

    OWN = auto()
    DOCUMENT = auto()
    REGISTERED = auto()


def identity_for(
    config: OAuthConfig, server: AuthorizationServer, *, document_url: str, refused: bool
) -> Identity:
    """Return how we identify; `refused`: our document was not taken there before."""
    if config.client_id:
        return Identity.OWN
    advertised = server.client_id_metadata_document_supported is True
    if advertised and document_url and config.cimd and not refused:
        return Identity.DOCUMENT
    return Identity.REGISTERED


def own_client(config: OAuthConfig) -> Client:
    """Return the client of the configuration; it is not bound to an issuer."""
    return Client(
        client_id=config.client_id,
        client_secret=config.client_secret or None,
        auth_method=config.token_endpoint_auth_method,
    )


def document_client(document_url: str, redirect_uri: str) -> Client:
    """Return the client that our document at a URL describes."""
    return Client(client_id=document_url, auth_method="none", redirect_uri=redirect_uri)


async def register(
    name: str,
    url: str,
    config: OAuthConfig,
    found: Found,
    fetcher: Fetcher,
    *,
    redirect_uri: str | None,
    scope: str | None,
) -> Client:
    """Return a client registered now for the MCP server at `url` (RFC 7591).

    Raises:
        ToolHostError: Nobody can register there, or we cannot.
        ServerUnavailable: It gave no word on it.
    """
    endpoint = found.server.registration_endpoint
    issuer = shown_url(found.server.issuer)
    if endpoint is None:
        raise ToolHostError(name, f"{issuer} registers no clients by itself: {REMEDY}")
    asked: dict[str, object] = {
        "client_name": client_name(config, url),
        "token_endpoint_auth_method": _method(config, found.server),
        "application_type": "native",
    }
    if redirect_uri is None:
        # Whoever asks for codes must say where they go (RFC 7591 section 2.1); a device asks for none.
        asked |= {"grant_types": [DEVICE_GRANT, "refresh_token"], "response_types": []}
    else:
        asked |= {
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "redirect_uris": [redirect_uri],
        }
    if scope:
        asked["scope"] = scope
    answer = await fetcher.post(endpoint, json=asked)
    if answer.undecided:
        problem = f"{shown_url(endpoint)} answers HTTP {answer.status}"
        raise ServerUnavailable(name, problem, sent=False)
    said = answer.json_object() or {}
    client_id = said.get("client_id")
    if answer.status not in {200, 201} or not isinstance(client_id, str) or not client_id:
        problem = f"{issuer} does not register us (HTTP {answer.status}): {REMEDY}"
        raise ToolHostError(name, problem)
    secret, method = said.get("client_secret"), said.get("token_endpoint_auth_method")
    return Client(
        client_id=client_id,
        client_secret=secret if isinstance(secret, str) and secret else None,
        auth_method=config.token_endpoint_auth_method or (method if method in _METHODS else None),
        redirect_uri=redirect_uri,
        issuer=found.server.issuer,
    )


def _method(config: OAuthConfig, server: AuthorizationServer) -> str:
    if config.token_endpoint_auth_method is not None:
        return config.token_endpoint_auth_method
    known = server.token_endpoint_auth_methods_supported
    return next((method for method in _METHODS if known is None or method in known), "none")
