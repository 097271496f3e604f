"""Which part an authorization server and its MCP server play; every wish of a test is a field."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Literal

from pydantic import TypeAdapter


class ResourceAt(StrEnum):
    """Where the MCP server describes itself (RFC 9728)."""

    HEADER = "header"
    """At a place that only its challenge names."""

    PATH = "path"
    ROOT = "root"
    NOWHERE = "nowhere"


class MetadataAt(StrEnum):
    """Where the authorization server describes itself (RFC 8414 section 3, OpenID Discovery)."""

    OAUTH = "oauth"
    """The well-known name before the path of the issuer."""

    OAUTH_SUFFIX = "oauth_suffix"
    """After it: no RFC says so, some servers do."""

    OPENID = "openid"
    OPENID_SUFFIX = "openid_suffix"
    ORIGIN = "origin"
    """At the MCP server's origin, which plays the authorization server too (MCP of 2025-03-26)."""

    NOWHERE = "nowhere"


class Registration(StrEnum):
    """How a client is registered by itself (RFC 7591)."""

    OPEN = "open"
    REFUSED = "refused"
    """Advertised, and answers 400."""

    UNKNOWN = "unknown"
    """Not advertised, and there is none."""


class Iss(StrEnum):
    """What the redirect says of who sent it (RFC 9207)."""

    RIGHT = "right"
    ABSENT = "absent"
    WRONG = "wrong"


class Method(StrEnum):
    """How a client shows who it is at the token endpoint (RFC 6749 section 2.3)."""

    NONE = "none"
    BASIC = "client_secret_basic"
    POST = "client_secret_post"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A client that somebody registered by hand; without `redirect_uris` any is taken."""

    client_id: str
    secret: str | None = None
    method: Method = Method.NONE
    redirect_uris: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What happens to one token request instead of an answer, or `after` it was acted on."""

    status: int = 500
    error: str = ""
    retry_after: int | None = None
    after: bool = False
    cut: bool = False
    """The connection ends without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One world. What it is without a word: everything that RFCs and MCP want, done right."""

    resource_at: ResourceAt = ResourceAt.PATH
    resource: str | None = None
    """What the description says it is for; None is the MCP server's URL."""

    metadata_at: MetadataAt = MetadataAt.OAUTH
    issuer_path: str = ""
    named_suffix: str = ""
    """What the MCP server appends to the issuer where it names it."""

    said_issuer: str | None = None
    """What the metadata say instead of the issuer."""

    scopes: tuple[str, ...] = ("mcp",)
    challenge_scope: str | None = None
    challenges: bool = True
    """Whether a 401 has a WWW-Authenticate header at all."""

    tool_scopes: Mapping[str, str] = field(default_factory=dict[str, str])
    """The scope without which a tool answers 403 (RFC 6750 section 3.1)."""

    open_methods: tuple[str, ...] = ()
    """What the MCP server answers without a token."""

    registration: Registration = Registration.OPEN
    registered_method: Method | None = None
    """What registration gives instead of the method that was asked for."""

    any_loopback_port: bool = False
    """Whether a redirect to this machine may have another port (RFC 8252 section 7.3)."""

    clients: tuple[Known, ...] = ()
    token_methods: tuple[Method, ...] | None = (Method.NONE, Method.BASIC, Method.POST)
    cimd: bool = False
    cimd_at_token: bool = True
    """Whether the token endpoint knows a client whose id is a URL."""

    challenge_methods: tuple[str, ...] | None = ("S256",)
    iss: Iss = Iss.RIGHT
    advertises_iss: bool = True
    consent: bool = True
    wants_resource: bool = True
    access_seconds: float = 3_600
    expires_in: Literal["number", "text", "absent"] = "number"
    refresh_for: Literal["everybody", "offline", "nobody"] = "everybody"
    """`offline`: who said `access_type=offline` or the scope `offline_access`."""

    rotates: bool = True
    repeats_refresh_token: bool = True
    """Whether the answer to a refresh has a refresh token."""

    detects_reuse: bool = True
    trouble: Trouble | None = None
    """What happens to every token request."""

    wants_user_agent: bool = False
    refuses_literal_redirect: bool = False
    """A firewall that takes `127.0.0.1` in a redirect for an attack."""

    device: bool = False
    device_interval: int | None = 5
    device_seconds: float = 600
    slow_downs: int = 0
    """How many polls are answered with `slow_down` before anything else."""

    client_credentials: bool = False


_NAMES = frozenset(known.name for known in fields(Settings))


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Read settings as JSON has them.

    Raises:
        ValueError: A name is none of them, or a value is wrong.
    """
    if unknown := given.keys() - _NAMES:
        raise ValueError(f"no setting is called {', '.join(sorted(unknown))}")
    return TypeAdapter(Settings).validate_python(dict(given))
