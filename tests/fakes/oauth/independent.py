"""An authorization server that nobody here wrote: Authlib's grants, over a socket of ours.

What is judged (clients, codes, PKCE, rotation, who may refresh) is judged by the library; this file
keeps its rows in memory and speaks HTTP for it.
"""

# Authlib has no types.
# pyright: basic

import json
import os
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

# It insists on https, which nobody speaks on the loopback of a test.
os.environ.setdefault("AUTHLIB_INSECURE_TRANSPORT", "1")

from authlib.oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import OAuth2Request
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload, JsonPayload, JsonRequest
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge

from tests.fakes.loopback_http import Answer, Handler, Loopback, Request, serve
from tests.fakes.mcp.http_server import mcp_server

PERSON: Final = "anna"


class Client:
    """A registered client, in the words of Authlib's `ClientMixin`."""

    def __init__(self, info: dict[str, Any], metadata: dict[str, Any]) -> None:
        self.client_id = info["client_id"]
        self.client_info = info
        self.client_metadata = metadata
        self._secret = info.get("client_secret") or ""

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return self.client_metadata["redirect_uris"][0]

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.client_metadata["redirect_uris"]

    def check_client_secret(self, client_secret: str) -> bool:
        return secrets.compare_digest(self._secret, client_secret)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        del endpoint
        return self.client_metadata.get("token_endpoint_auth_method") == method

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.client_metadata.get("grant_types", [])


class Code:
    """A code that waits to be redeemed."""

    def __init__(self, code: str, request: Any) -> None:
        data = request.payload.data
        self.code = code
        self.client_id = request.client.get_client_id()
        self.redirect_uri = data.get("redirect_uri")
        self.scope = data.get("scope") or ""
        self.code_challenge = data.get("code_challenge")
        self.code_challenge_method = data.get("code_challenge_method")

    def get_redirect_uri(self) -> str | None:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


class Token:
    """A token pair."""

    def __init__(self, given: dict[str, Any], client: Client) -> None:
        self.access = given["access_token"]
        self.refresh = given.get("refresh_token")
        self.scope = given.get("scope") or ""
        self.client = client
        self.until = time.time() + given["expires_in"]
        self.revoked = False

    def check_client(self, client: Client) -> bool:
        return client.get_client_id() == self.client.get_client_id()

    def get_scope(self) -> str:
        return self.scope


class CodeGrant(AuthorizationCodeGrant):
    """Codes of this server."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")

    def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
        self.server.codes[code] = Code(code, request)

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found = self.server.codes.get(code)
        return found if found is not None and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del self.server.codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> str:
        del authorization_code
        return PERSON


class RotatingGrant(RefreshTokenGrant):
    """Refresh tokens that are good once."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        for token in self.server.tokens:
            if token.refresh == refresh_token:
                if token.revoked:
                    self.server.replays += 1
                return None if token.revoked else token
        return None

    def authenticate_user(self, refresh_token: Token) -> str:
        del refresh_token
        return PERSON

    def revoke_old_credential(self, refresh_token: Token) -> None:
        refresh_token.revoked = True


class Registration(ClientRegistrationEndpoint):
    """Registration that is open to everybody."""

    def authenticate_token(self, request: Any) -> str:
        del request
        return "anybody"

    def resolve_public_key(self, request: Any) -> None:
        del request

    def get_server_metadata(self) -> dict[str, Any]:
        return self.server.metadata

    def save_client(self, client_info: Any, client_metadata: Any, request: Any) -> Client:
        del request
        client = Client(dict(client_info), dict(client_metadata))
        self.server.clients[client.client_id] = client
        return client


class Server(AuthorizationServer):
    """Authlib's server with its rows in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: dict[str, Client] = {}
        self.codes: dict[str, Code] = {}
        self.tokens: list[Token] = []
        self.metadata: dict[str, Any] = {}
        self.replays = 0
        self.renewals = 0
        self.register_token_generator(
            "default",
            BearerTokenGenerator(
                access_token_generator=lambda **_: secrets.token_urlsafe(24),
                refresh_token_generator=lambda **_: secrets.token_urlsafe(24),
                expires_generator=lambda *_: 3_600,
            ),
        )
        self.register_grant(CodeGrant, [CodeChallenge(required=True)])
        self.register_grant(RotatingGrant)
        self.register_endpoint(Registration)

    def query_client(self, client_id: str) -> Client | None:
        return self.clients.get(client_id)

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        self.tokens.append(Token(token, request.client))
        self.renewals += request.payload.grant_type == "refresh_token"

    def create_oauth2_request(self, request: OAuth2Request) -> OAuth2Request:
        return request

    def create_json_request(self, request: Any) -> Any:
        return request

    def handle_response(
        self, status: int, body: Any, headers: Any
    ) -> tuple[int, Any, dict[str, str]]:
        return status, body, dict(headers)

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Tell nobody."""

    def lets_by(self, token: str) -> bool:
        """Tell whether an access token is good now."""
        return any(
            known.access == token and not known.revoked and known.until > time.time()
            for known in self.tokens
        )


class Independent:
    """The server, the MCP server behind it, and what a test does with both."""

    def __init__(self) -> None:
        self.server = Server()
        self.issuer = ""
        self.url = ""

    def expire(self) -> None:
        """End every access token before its time."""
        for token in self.server.tokens:
            token.until = 0

    async def answer(self, request: Request, answer: Answer) -> None:
        """Answer for the authorization server."""
        parts = urlsplit(request.path)
        query = dict(parse_qsl(parts.query))
        form = dict(parse_qsl(request.raw.decode())) if parts.path == "/token" else {}
        asked = OAuth2Request(
            request.method,
            self.issuer + request.path,
            headers={name.title(): value for name, value in request.headers.items()},
        )
        asked.payload = BasicOAuth2Payload({**query, **form})
        match parts.path:
            case "/.well-known/oauth-authorization-server":
                await answer.json(200, self.server.metadata)
            case "/authorize":
                grant = self.server.get_consent_grant(asked, end_user=PERSON)
                await _reply(
                    answer,
                    self.server.create_authorization_response(
                        asked, grant_user=PERSON, grant=grant
                    ),
                )
            case "/token":
                await _reply(answer, _with_form(self.server, asked, form))
            case "/register":
                json_request = JsonRequest(request.method, self.issuer + request.path)
                json_request.payload = _Json(dict(request.body))
                json_request.headers = dict(request.headers)
                name = Registration.ENDPOINT_NAME
                await _reply(answer, self.server.create_endpoint_response(name, json_request))
            case _:
                await answer.json(404, {})

    async def guard(self, request: Request, answer: Answer) -> bool:
        """Come before the MCP server."""
        path = urlsplit(request.path).path
        if path == "/.well-known/oauth-protected-resource/mcp":
            about = {"resource": self.url, "authorization_servers": [self.issuer]}
            await answer.json(200, about)
            return True
        if path != "/mcp":
            await answer.json(404, {})
            return True
        _, _, token = request.headers.get("authorization", "").partition(" ")
        if self.server.lets_by(token):
            return False
        await answer.json(401, {}, headers={"www-authenticate": "Bearer"})
        return True


class _Json(JsonPayload):
    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    @property
    def data(self) -> dict[str, Any]:
        return self._data


class _Form(OAuth2Request):
    """A request whose form the library reads to find out who asks."""

    form: dict[str, str] = {}  # noqa: RUF012 - set on each one
    args: dict[str, str] = {}  # noqa: RUF012


def _with_form(server: Server, asked: OAuth2Request, form: dict[str, str]) -> Any:
    request = _Form(asked.method, asked.uri, headers=asked.headers)
    request.form = form
    request.payload = BasicOAuth2Payload(form)
    return server.create_token_response(request)


async def _reply(answer: Answer, response: Any) -> None:
    status, body, headers = response
    text = json.dumps(body) if isinstance(body, dict) else body or ""
    kept = {name.lower(): value for name, value in headers.items()}
    kept.pop("content-type", None)
    await answer.whole(status, text.encode(), headers=kept)


@asynccontextmanager
async def independent_world() -> AsyncGenerator[Independent]:
    """Serve both on 127.0.0.1 until the end of the block."""
    world = Independent()

    def make(loopback: Loopback) -> Handler:
        del loopback
        return world.answer

    async with serve(make) as loopback, mcp_server(intercept=world.guard) as mcp:
        world.issuer = f"http://127.0.0.1:{loopback.port}"
        world.url = mcp.url
        world.server.metadata = {
            "issuer": world.issuer,
            "authorization_endpoint": f"{world.issuer}/authorize",
            "token_endpoint": f"{world.issuer}/token",
            "registration_endpoint": f"{world.issuer}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
        }
        yield world
