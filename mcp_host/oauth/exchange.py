"""The token endpoint: what is sent there for each grant, and what its answers mean.

RFC 6749 sections 4 to 6, RFC 8628, RFC 8707. An answer that is not the endpoint's word against the
grant itself costs nothing: it is tried again.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote

from gateway.domain.errors import ServerUnavailable, ToolHostError
from mcp_host.oauth.config import OAuthConfig
from mcp_host.oauth.discovery import Found
from mcp_host.oauth.fetch import Fetched, Fetcher
from mcp_host.oauth.tokens import Client, Tokens, seconds
from mcp_host.transports.failures import shown_url

DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"

_BASIC: Final = "client_secret_basic"
_POST: Final = "client_secret_post"
_NONE: Final = "none"
_ERROR_CODE: Final = re.compile(r"[a-z0-9_]{1,40}")
_TRANSIENT: Final = frozenset({"temporarily_unavailable", "server_error"})


class GrantRefused(ToolHostError):
    """The token endpoint said no; `code` is its word of RFC 6749 section 5.2 or RFC 8628."""

    def __init__(self, server: str, code: str) -> None:
        super().__init__(server, f"its token endpoint refuses: {code}")
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What the endpoint gave; `lifetime` in seconds, None when it did not say."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    lifetime: float | None = None
    scope: str | None = None

    def put_in(self, before: Tokens, now: float) -> Tokens:
        """Return what a token file holds from now on; what the endpoint left out stays as it was."""
        return replace(
            before,
            access_token=self.access_token,
            refresh_token=self.refresh_token or before.refresh_token,
            expires_at=None if self.lifetime is None else now + self.lifetime,
            lifetime=self.lifetime,
            scope=self.scope or before.scope,
        )


class TokenEndpoint:
    """Asks the token endpoint that a server's metadata names, and no other."""

    def __init__(self, name: str, found: Found, config: OAuthConfig, fetcher: Fetcher) -> None:
        self._name = name
        self._found = found
        self._config = config
        self._fetcher = fetcher

    async def redeem(self, client: Client, *, code: str, verifier: str, redirect_uri: str) -> Grant:
        """Return the tokens for an authorization code.

        Raises:
            GrantRefused: The endpoint says no.
            ServerUnavailable: It gave no word on it.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": redirect_uri,
        }
        return await self._ask(client, form)

    async def renew(self, client: Client, refresh_token: str) -> Grant:
        """Return the tokens for a refresh token; raises as `redeem`."""
        return await self._ask(
            client, {"grant_type": "refresh_token", "refresh_token": refresh_token}
        )

    async def by_credentials(self, client: Client, scope: str | None) -> Grant:
        """Return a token for the client itself; raises as `redeem`."""
        wanted = {"scope": scope} if scope else {}
        return await self._ask(client, {"grant_type": "client_credentials", **wanted})

    async def by_device(self, client: Client, device_code: str) -> Grant:
        """Return the tokens once a person has let a device in; raises as `redeem`."""
        return await self._ask(client, {"grant_type": DEVICE_GRANT, "device_code": device_code})

    async def start_device(self, client: Client, scope: str | None) -> Fetched:
        """Return the endpoint's answer to a device that wants to be let in (RFC 8628, 3.1)."""
        url = self._found.server.device_authorization_endpoint
        if url is None:
            raise ToolHostError(self._name, "it offers no sign-in by device code")
        form = {"resource": self._found.resource, **({"scope": scope} if scope else {})}
        headers = self._identify(client, form)
        return await self._fetcher.post(url, form=form, headers=headers)

    async def _ask(self, client: Client, given: Mapping[str, str]) -> Grant:
        form = {**given, "resource": self._found.resource}
        headers = self._identify(client, form)
        if self._config.user_agent:
            headers["user-agent"] = self._config.user_agent
        url = self._found.server.token_endpoint
        return self._read(await self._fetcher.post(url, form=form, headers=headers), url)

    def _identify(self, client: Client, form: dict[str, str]) -> dict[str, str]:
        """Say who we are, in the form or in headers that are returned (RFC 6749, 2.3.1)."""
        method = self._method(client)
        if method == _BASIC and client.client_secret is not None:
            pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
            return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}
        form["client_id"] = client.client_id
        if method == _POST and client.client_secret is not None:
            form["client_secret"] = client.client_secret
        return {}

    def _method(self, client: Client) -> str:
        if client.auth_method is not None:
            return client.auth_method
        if client.client_secret is None:
            return _NONE
        # What a server that names none takes is Basic (RFC 8414, section 2).
        known = self._found.server.token_endpoint_auth_methods_supported or (_BASIC,)
        return _BASIC if _BASIC in known else _POST

    def _read(self, answer: Fetched, url: str) -> Grant:
        said = answer.json_object() or {}
        code = said.get("error")
        if answer.undecided or (isinstance(code, str) and code in _TRANSIENT):
            problem = f"{shown_url(url)} answers HTTP {answer.status}"
            raise ServerUnavailable(self._name, problem, sent=False)
        if isinstance(code, str):
            shown = code if _ERROR_CODE.fullmatch(code) else "an error that is none of OAuth's"
            raise GrantRefused(self._name, shown)
        token = said.get("access_token")
        if answer.status not in {200, 201} or not isinstance(token, str) or not token:
            problem = f"{shown_url(url)} answers HTTP {answer.status} without a token"
            raise ServerUnavailable(self._name, problem, sent=False)
        kind = said.get("token_type", "Bearer")
        if not isinstance(kind, str) or kind.lower() != "bearer":
            raise ToolHostError(self._name, "its tokens are of a kind that we cannot send")
        refresh, scope = said.get("refresh_token"), said.get("scope")
        lifetime = seconds(said.get("expires_in"))
        return Grant(
            access_token=token,
            refresh_token=refresh if isinstance(refresh, str) and refresh else None,
            lifetime=lifetime if lifetime is not None and lifetime > 0 else None,
            scope=scope if isinstance(scope, str) and scope else None,
        )
