"""Finds who signs people in to a server: from its challenge, its metadata, and its origin at last.

RFC 9728 and RFC 8414 in the order that MCP gives. A document that cannot be had now ends the search:
another one further down would name somebody else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.domain.errors import ServerUnavailable, ToolHostError
from mcp_host.oauth.fetch import Fetched, Fetcher
from mcp_host.transports.failures import shown_url

Scopes: TypeAlias = tuple[str, ...]

_CHALLENGE_FIELD: Final = r'(?:^|[\s,]){name}\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))'


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """What a server said when it refused us (RFC 6750, RFC 9728 section 5.1)."""

    status: int
    metadata_url: str | None = None
    scope: str | None = None
    error: str | None = None


class AuthorizationServer(BaseModel):
    """What an authorization server says of itself (RFC 8414), as far as we use it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str
    registration_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    scopes_supported: Scopes | None = None
    token_endpoint_auth_methods_supported: Scopes | None = None
    code_challenge_methods_supported: Scopes | None = None
    client_id_metadata_document_supported: bool | None = None
    sends_iss: bool | None = Field(
        default=None, alias="authorization_response_iss_parameter_supported"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Who signs people in to a server, for which resource, and which scopes it speaks of."""

    server: AuthorizationServer
    resource: str
    scopes: Scopes | None = None


def challenge_of(status: int, headers: Mapping[str, str]) -> Challenge:
    """Read a refusal; `headers` by lower-case name."""
    said = headers.get("www-authenticate", "")
    return Challenge(
        status=status,
        metadata_url=_field(said, "resource_metadata"),
        scope=_field(said, "scope"),
        error=_field(said, "error"),
    )


def _field(challenge: str, name: str) -> str | None:
    found = re.search(_CHALLENGE_FIELD.format(name=name), challenge, re.IGNORECASE)
    if found is None:
        return None
    quoted, bare = found.groups()
    return re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare


class Discovery:
    """Searches for one MCP server."""

    def __init__(self, name: str, url: str, fetcher: Fetcher) -> None:
        self._name = name
        self._url = url
        self._fetcher = fetcher

    async def find(self, challenge: Challenge | None = None) -> Found:
        """Return who signs people in.

        Raises:
            ToolHostError: It says nobody, or something that must not be followed.
            ServerUnavailable: A document could not be had now.
        """
        from mcp.client.auth.utils import (
            build_oauth_authorization_server_metadata_discovery_urls as places_of,
        )
        from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls
        from mcp.shared.auth_utils import resource_url_from_server_url

        header = challenge.metadata_url if challenge is not None else None
        resource = resource_url_from_server_url(self._url)
        issuer: str | None = None
        scopes: Scopes | None = None
        for place in build_protected_resource_metadata_discovery_urls(header, self._url):
            described = await self._document(place)
            if described is not None and (read := self._resource(described)) is not None:
                resource, issuer, scopes = read
                break
        for place in places_of(issuer, self._url):
            described = await self._document(place)
            if described is not None and (server := _authorization_server(described)) is not None:
                self._check_issuer(server, issuer)
                return Found(server=server, resource=resource, scopes=scopes)
        raise ToolHostError(
            self._name,
            f"{shown_url(issuer or self._url)} publishes no OAuth metadata: nobody can sign in there",
        )

    async def _document(self, url: str) -> Fetched | None:
        """Return what a place has, None when it has nothing."""
        from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
        from mcp_types import LATEST_PROTOCOL_VERSION

        headers = {MCP_PROTOCOL_VERSION_HEADER: LATEST_PROTOCOL_VERSION}
        fetched = await self._fetcher.get(url, headers)
        if fetched.undecided:
            problem = f"{shown_url(url)} answers HTTP {fetched.status}"
            raise ServerUnavailable(self._name, problem, sent=False)
        return fetched if fetched.status == 200 else None

    def _resource(self, fetched: Fetched) -> tuple[str, str, Scopes | None] | None:
        """Return resource, issuer and scopes of a server's description of itself (RFC 9728)."""
        from mcp.shared.auth import ProtectedResourceMetadata
        from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url

        try:
            described = ProtectedResourceMetadata.model_validate_json(fetched.body)
        except ValidationError:
            return None
        resource = str(described.resource)
        ours = resource_url_from_server_url(self._url)
        if not check_resource_allowed(requested_resource=ours, configured_resource=resource):
            raise ToolHostError(
                self._name,
                f"its metadata is for another resource ({shown_url(resource)}): not signed in",
            )
        scopes = described.scopes_supported
        issuer = str(described.authorization_servers[0])
        return resource, issuer, None if scopes is None else tuple(scopes)

    def _check_issuer(self, server: AuthorizationServer, issuer: str | None) -> None:
        """Refuse metadata that speaks for somebody else than where it came from (RFC 8414, 3.3)."""
        from mcp.client.auth.utils import issuers_match

        expected = issuer or _origin(self._url)
        # An origin that names no issuer of its own (2025-03-26) may speak for one with a path.
        same = issuers_match(server.issuer, expected)
        if not same and not (issuer is None and _origin(server.issuer) == expected):
            raise ToolHostError(
                self._name,
                f"the metadata of {shown_url(expected)} is of another issuer "
                f"({shown_url(server.issuer)}): not signed in",
            )


def _authorization_server(fetched: Fetched) -> AuthorizationServer | None:
    described = fetched.json_object()
    if described is None:
        return None
    try:
        return AuthorizationServer.model_validate(_without_nothing(described))
    except ValidationError:
        return None


def _without_nothing(described: Mapping[str, Any]) -> dict[str, Any]:
    # Some servers write what they do not have as null or "".
    return {name: value for name, value in described.items() if value not in (None, "")}


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
