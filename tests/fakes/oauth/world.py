"""One authorization server and the MCP server it guards: their settings, books, and what they saw."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from gateway.ports import Clock
from tests.fakes.loopback_http import Request
from tests.fakes.mcp.http_server import HttpServer, Intercept
from tests.fakes.oauth.books import Books, DeviceState
from tests.fakes.oauth.settings import MetadataAt, ResourceAt, Settings, Trouble

AUTHORITY = "authority"
RESOURCE = "resource"
TOKEN = "/oauth/token"
AUTHORIZE = "/oauth/authorize"
REGISTER = "/oauth/register"
DEVICE = "/oauth/device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request; `form` is what was posted, `server` who got it."""

    server: str
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    form: Mapping[str, str]
    json: Mapping[str, object]


@dataclass(slots=True, kw_only=True)
class World:
    """What a test works with; `settings` may change at any time, by `change`."""

    settings: Settings
    clock: Clock
    books: Books = field(default_factory=Books)
    seen: list[Seen] = field(default_factory=list[Seen])
    trouble: list[Trouble] = field(default_factory=list[Trouble])
    """What happens to the next token requests, one each."""

    answers_tokens: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is clear, token requests wait."""

    before: Intercept | None = None
    """Comes before the MCP server in everything."""

    authority_origin: str = ""
    mcp: HttpServer | None = None

    def __post_init__(self) -> None:
        self.answers_tokens.set()

    @property
    def url(self) -> str:
        """The URL of the MCP server."""
        assert self.mcp is not None
        return self.mcp.url

    @property
    def resource_origin(self) -> str:
        return self.url.removesuffix("/mcp")

    @property
    def resource(self) -> str:
        """What tokens are for (RFC 8707)."""
        return self.settings.resource or self.url

    @property
    def issuer(self) -> str:
        """Who signs people in now."""
        if self.settings.metadata_at is MetadataAt.ORIGIN:
            return self.resource_origin
        return self.authority_origin + self.settings.issuer_path

    def is_for_us(self, resource: str | None) -> bool:
        """Tell whether a token that names this resource is for the MCP server."""
        if not self.settings.wants_resource:
            return True
        # A server of 2025-03-26 names no resource, and its clients may know none.
        unnamed = resource is None and self.settings.resource_at is ResourceAt.NOWHERE
        return unnamed or resource == self.resource

    @property
    def calls(self) -> list[str]:
        """The texts of the tool calls that ran."""
        assert self.mcp is not None
        return self.mcp.calls

    def now(self) -> float:
        return self.clock.now().timestamp()

    def change(self, **wanted: Any) -> None:
        """Change settings from now on."""
        self.settings = replace(self.settings, **wanted)

    def note(self, server: str, request: Request) -> Seen:
        """Write a request down."""
        parts = urlsplit(request.path)
        is_form = "form-urlencoded" in request.headers.get("content-type", "")
        form = dict(parse_qsl(request.raw.decode(), keep_blank_values=True)) if is_form else {}
        seen = Seen(
            server=server,
            method=request.method,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers=request.headers,
            form=form,
            json=request.body,
        )
        self.seen.append(seen)
        return seen

    def at(self, suffix: str) -> list[Seen]:
        """Return the requests to a path with that end, oldest first."""
        return [seen for seen in self.seen if seen.path.endswith(suffix)]

    def token_posts(self, grant: str = "") -> list[Seen]:
        """Return the token requests, or those with a grant type of that end."""
        posts = (seen for seen in self.at(TOKEN) if seen.method == "POST")
        return [seen for seen in posts if seen.form.get("grant_type", "").endswith(grant)]

    def expire(self) -> None:
        """End every access token before its time."""
        self.books.expire()

    def revoke(self) -> None:
        """End every sign-in: refresh tokens are `invalid_grant` from now on."""
        self.books.revoke()

    def decide(self, user_code: str, state: DeviceState = DeviceState.APPROVED) -> None:
        """Do what a person does with a device code."""
        for device in self.books.devices.values():
            if device.user_code == user_code:
                device.state = state
                return
        raise LookupError(f"no device shows {user_code}")
