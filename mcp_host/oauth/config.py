"""The keys of `oauth` in a server's entry: who we are to its authorization server, and how one signs in."""

import ipaddress
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from mcp_host.network_config import HeaderValue
from mcp_host.oauth.cimd import check_url

RESERVED_PARAMETERS: Final = frozenset(
    {
        "client_id",
        "code_challenge",
        "code_challenge_method",
        "redirect_uri",
        "resource",
        "response_type",
        "state",
    }
)
"""What `authorize_params` must not say: the safety of the login rests on them."""

FIGMA_HOST: Final = "mcp.figma.com"
FIGMA_ISSUER: Final = "https://api.figma.com"
"""The one issuer that may leave out `iss` although it says that it sends it (SPEC §8)."""

_FIGMA_CLIENT: Final = "Claude Code"
_CLIENT: Final = "Hermes Gateway"


class Auth(StrEnum):
    """How we show a server who we are, beside the headers of its entry."""

    NONE = "none"
    OAUTH = "oauth"


class Flow(StrEnum):
    """How a grant is obtained; the last one needs no person."""

    BROWSER = "browser"
    DEVICE = "device"
    CLIENT_CREDENTIALS = "client_credentials"


def _texts_by_name(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    named = cast("Mapping[object, object]", value)
    return {str(name): _as_text(item) for name, item in named.items()}


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


def _not_reserved(value: dict[str, str]) -> dict[str, str]:
    for name in value:
        if name in RESERVED_PARAMETERS:
            raise ValueError(f"must not set {name}: the login sets it")
    return value


def _redirect(value: str) -> str:
    try:
        parts = urlsplit(value)
        known = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError("is no URL") from None
    if parts.scheme not in {"http", "https"} or not known or parts.fragment:
        raise ValueError("must begin with http:// or https:// and a host, without a fragment")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("must be https unless its host is this machine")
    return value


def _scope(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return " ".join(str(item) for item in cast("list[object]", value))
    return value


def _document_url(value: str) -> str:
    return check_url(value) if value else value


def is_loopback(host: str) -> bool:
    """Tell whether a host of a URL is this machine, by its name alone."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # A name may begin with 127. and lead anywhere.
        return False
    return address.is_loopback


_Text: TypeAlias = Annotated[str, Field(max_length=2_000)]
DocumentUrl: TypeAlias = Annotated[_Text, AfterValidator(_document_url)]
_Parameters: TypeAlias = Annotated[
    dict[str, _Text], BeforeValidator(_texts_by_name), AfterValidator(_not_reserved)
]


class OAuthConfig(BaseModel):
    """One `oauth` section; None and empty mean that the login decides.

    `user_agent` goes to the token endpoint alone; `timeout` is how many seconds a person has.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    client_id: _Text = ""
    client_secret: _Text = Field(default="", repr=False)
    client_metadata_url: DocumentUrl = ""
    cimd: bool = True
    user_agent: HeaderValue = ""
    client_name: _Text = ""
    scope: Annotated[_Text, BeforeValidator(_scope)] = ""
    redirect_host: Literal["127.0.0.1", "localhost"] = "127.0.0.1"
    redirect_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    redirect_uri: Annotated[_Text, AfterValidator(_redirect)] | None = None
    token_endpoint_auth_method: (
        Literal["none", "client_secret_basic", "client_secret_post"] | None
    ) = None
    flow: Flow | None = None
    authorize_params: _Parameters = Field(default_factory=dict)
    timeout: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 300


def client_name(config: OAuthConfig, url: str) -> str:
    """Return the name under which we register at the server of a URL."""
    if config.client_name:
        return config.client_name
    return _FIGMA_CLIENT if (urlsplit(url).hostname or "") == FIGMA_HOST else _CLIENT
