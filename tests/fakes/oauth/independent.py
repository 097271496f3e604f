"""An authorization server and an MCP server that nobody here wrote: Authlib's, and the SDK's own.

What is ours is where they keep things. The person is signed in and says yes to everything.
Run as `python -m tests.fakes.oauth.independent`: prints one line of JSON with `url` and `issuer`;
`<issuer>/books` says what happened. Ends at SIGTERM.
"""

# Authlib's types are written by others than its code, and are narrower or wider than what it does:
# what crosses its border is `Any`.

import asyncio
import json
import socket
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, cast

import uvicorn
from authlib.common.security import generate_token
from authlib.oauth2.rfc6749 import (
    AuthorizationServer,
    ClientMixin,
    JsonPayload,
    JsonRequest,
    OAuth2Request,
    TokenMixin,
)
from authlib.oauth2.rfc6749.errors import OAuth2Error
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from authlib.oauth2.rfc9207 import IssuerParameter
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SCOPE: Final = "mcp"
PERSON: Final = "anna"
METHODS: Final = ["none", "client_secret_basic", "client_secret_post"]
GRANTS: Final = ["authorization_code", "refresh_token"]


@dataclass(slots=True, kw_only=True)
class Registered(ClientMixin):
    """A client as it registered itself."""

    client_id: str
    secret: str
    about: Mapping[str, Any]

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return self.about["redirect_uris"][0]

    def get_allowed_scope(self, scope: Any) -> str:
        return scope or SCOPE

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.about["redirect_uris"]

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == self.about.get("token_endpoint_auth_method", "client_secret_basic")

    def check_response_type(self, response_type: str) -> bool:
        return response_type in self.about.get("response_types", ["code"])

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.about.get("grant_types", ["authorization_code"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """An authorization code, with the fields that Authlib looks at."""

    code: str
    client_id: str
    redirect_uri: str
    scope: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass(slots=True, kw_only=True)
class Token(TokenMixin):
    """An access token, and the refresh token that came with it."""

    access: str
    refresh: str | None
    client_id: str
    scope: str
    resource: str | None
    ends_at: float
    renewed: bool = False

    def check_client(self, client: Registered) -> bool:
        return client.client_id == self.client_id

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return time.time() >= self.ends_at

    def is_revoked(self) -> bool:
        return self.renewed


@dataclass(slots=True)
class Books:
    """What the server keeps; `granted` counts the grants by kind."""

    clients: dict[str, Registered] = field(default_factory=dict[str, Registered])
    codes: dict[str, Code] = field(default_factory=dict[str, Code])
    tokens: list[Token] = field(default_factory=list[Token])
    granted: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])

    async def verify_token(self, token: str) -> AccessToken | None:
        """Implements the SDK's `TokenVerifier`."""
        for known in self.tokens:
            if known.access == token and not known.is_expired() and not known.is_revoked():
                return AccessToken(
                    token=token,
                    client_id=known.client_id,
                    scopes=known.scope.split(),
                    expires_at=int(known.ends_at),
                    resource=known.resource,
                )
        return None


class _Asked(OAuth2Request):
    """A request as Authlib reads it."""

    def __init__(self, request: Request, form: Mapping[str, str]) -> None:
        # Its body is a deprecated argument without a type.
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            request.method, str(request.url), headers=request.headers
        )
        self._query = dict(request.query_params)
        self._posted = dict(form)
        self.payload = BasicOAuth2Payload({**self._query, **self._posted})

    @property
    def args(self) -> Any:
        return self._query

    @property
    def form(self) -> dict[str, str]:
        return self._posted


class _Given(JsonPayload):
    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = dict(data)

    @property
    def data(self) -> dict[str, Any]:
        return self._data


class _Answer(Response):
    """A response whose `location` Authlib can change."""

    @property
    def location(self) -> str | None:
        return self.headers.get("location")

    @location.setter
    def location(self, value: str) -> None:
        self.headers["location"] = value


class _Server(AuthorizationServer):
    """Authlib's server on these books."""

    def __init__(self, books: Books) -> None:
        super().__init__(scopes_supported=[SCOPE])
        self.books = books

    def query_client(self, client_id: str) -> Any:
        return self.books.clients.get(client_id)

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        self.books.granted[request.form["grant_type"]] += 1
        self.books.tokens.append(
            Token(
                access=token["access_token"],
                refresh=token.get("refresh_token"),
                client_id=request.client.client_id,
                scope=token["scope"],
                resource=request.form.get("resource"),
                ends_at=time.time() + token["expires_in"],
            )
        )

    def create_oauth2_request(self, request: _Asked) -> _Asked:
        return request

    def create_json_request(self, request: JsonRequest) -> JsonRequest:
        return request

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Nobody listens."""

    def handle_response(self, status: int, body: Any, headers: Any) -> Any:
        if status >= 400:
            self.books.refused[body["error"]] += 1
        text = body if isinstance(body, str) else json.dumps(body)
        return _Answer(text, status_code=status, headers=dict(headers))


class _ByCode(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def save_authorization_code(self, code: str, request: Any) -> None:
        asked = request.payload.data
        self.server.books.codes[code] = Code(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=asked["redirect_uri"],
            scope=request.scope,
            code_challenge=asked["code_challenge"],
            code_challenge_method=asked["code_challenge_method"],
        )

    def query_authorization_code(self, code: str, client: Any) -> Code | None:
        found = self.server.books.codes.get(code)
        return found if found is not None and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del self.server.books.codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> str:
        return PERSON


class _ByRefresh(RefreshTokenGrant):
    """Each refresh token is good once; one that comes again ends all that its client has."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Any:
        books: Books = self.server.books
        found = next((token for token in books.tokens if token.refresh == refresh_token), None)
        if found is None or not found.renewed:
            return found
        for token in books.tokens:
            token.renewed = token.renewed or token.client_id == found.client_id
        return None

    def authenticate_user(self, refresh_token: Any) -> str:
        return PERSON

    def revoke_old_credential(self, refresh_token: Any) -> None:
        refresh_token.renewed = True


class _Registration(ClientRegistrationEndpoint):
    """Open to everybody (RFC 7591 section 3)."""

    def authenticate_token(self, request: JsonRequest) -> str:
        return "everybody"

    def get_server_metadata(self) -> dict[str, Any]:
        return {
            "scopes_supported": [SCOPE],
            "response_types_supported": ["code"],
            "grant_types_supported": GRANTS,
            "token_endpoint_auth_methods_supported": METHODS,
        }

    def save_client(
        self, client_info: dict[str, Any], client_metadata: dict[str, Any], request: JsonRequest
    ) -> Registered:
        client = Registered(
            client_id=client_info["client_id"],
            secret=client_info["client_secret"],
            about=client_metadata,
        )
        self.server.books.clients[client.client_id] = client
        return client


def authority(books: Books, issuer: str, *, seconds: int) -> Starlette:
    """Return the authorization server; its access tokens live that long."""
    server: Any = _Server(books)

    def lifetime(*_: object) -> int:
        return seconds

    generator: Any = BearerTokenGenerator(_random, _random, lifetime)
    server.register_token_generator("default", generator)
    server.register_grant(_ByCode, [CodeChallenge(required=True)])
    server.register_grant(_ByRefresh)
    server.register_endpoint(_Registration)

    class Issuer(IssuerParameter):
        def get_issuer(self) -> str:
            return issuer

    server.register_extension(Issuer())
    said = AuthorizationServerMetadata(
        {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/sign-in",
            "token_endpoint": f"{issuer}/exchange",
            "registration_endpoint": f"{issuer}/clients",
            "scopes_supported": [SCOPE],
            "response_types_supported": ["code"],
            "grant_types_supported": GRANTS,
            "token_endpoint_auth_methods_supported": METHODS,
            "code_challenge_methods_supported": ["S256"],
        }
    )
    said.validate()
    # RFC 9207 section 3: Authlib's model is older than this field.
    described = {**said, "authorization_response_iss_parameter_supported": True}

    async def metadata(_: Request) -> Response:
        return JSONResponse(described)

    async def sign_in(request: Request) -> Any:
        asked = _Asked(request, {})
        try:
            grant = server.get_consent_grant(asked, end_user=PERSON)
        except OAuth2Error as error:
            return server.handle_error_response(asked, error)
        return server.create_authorization_response(asked, grant_user=PERSON, grant=grant)

    async def exchange(request: Request) -> Any:
        form = cast("Mapping[str, str]", await request.form())
        return server.create_token_response(_Asked(request, form))

    async def clients(request: Request) -> Any:
        asked = JsonRequest(request.method, str(request.url), headers=request.headers)
        asked.payload = _Given(await request.json())
        return server.create_endpoint_response("client_registration", asked)

    async def told(_: Request) -> Response:
        return JSONResponse(
            {
                "clients": [asdict(client) for client in books.clients.values()],
                "granted": books.granted,
                "refused": books.refused,
            }
        )

    return Starlette(
        routes=[
            Route("/.well-known/oauth-authorization-server", metadata),
            Route("/sign-in", sign_in),
            Route("/exchange", exchange, methods=["POST"]),
            Route("/clients", clients, methods=["POST"]),
            Route("/books", told),
        ]
    )


def guarded(books: Books, issuer: str, url: str) -> Starlette:
    """Return the SDK's MCP server, which takes the tokens of that issuer for itself alone."""
    auth = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(url),
        required_scopes=[SCOPE],
        validate_token_resource=True,
    )
    server = MCPServer("independent", token_verifier=books, auth=auth)

    @server.tool()
    async def shout(text: str) -> str:
        """Return the text in capitals."""
        return text.upper()

    return server.streamable_http_app()


def _random(**_: object) -> str:
    return generate_token(42)


async def run(seconds: int) -> None:
    books = Books()
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    issuer, origin = (f"http://127.0.0.1:{bound.getsockname()[1]}" for bound in sockets)
    url = f"{origin}/mcp"
    apps = (authority(books, issuer, seconds=seconds), guarded(books, issuer, url))
    servers = [
        uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
        for app in apps
    ]
    sys.stdout.write(json.dumps({"url": url, "issuer": issuer}) + "\n")
    sys.stdout.flush()
    async with asyncio.TaskGroup() as tasks:
        for server, bound in zip(servers, sockets, strict=True):
            tasks.create_task(server.serve(sockets=[bound]))


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 3_600))
