"""The values of the sections `mcp_servers` and `mcp`: each key, its type and its default.

Knows no file and no findings: `config` reads the sections into these.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Self, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    model_validator,
)

from mcp_host.lifecycle_config import NETWORK_CONNECTIONS, STDIO_CONNECTIONS, LifecycleConfig
from mcp_host.network_config import (
    Certificate,
    FilePath,
    Headers,
    IdentityHeader,
    Transport,
    Url,
    Verification,
)
from mcp_host.oauth.config import Auth, DocumentUrl, OAuthConfig
from mcp_host.sanitize import show_name

_AnyMapping: TypeAlias = "Mapping[object, object]"

LATER: Final[Mapping[str, object]] = {}
"""Documented keys without an effect yet, and the value for which that makes no difference."""

LATER_TOOLS: Final[Mapping[str, object]] = {}
LATER_ELICITATION: Final[Mapping[str, object]] = {}
LATER_SAMPLING: Final[Mapping[str, object]] = {}
LATER_OAUTH: Final[Mapping[str, object]] = {}
LATER_MCP: Final[Mapping[str, object]] = {}


class Trust(StrEnum):
    """Whether a server's word that a tool only reads is needed before it may run unasked."""

    FULL = "full"
    UNTRUSTED = "untrusted"


class Protocol(StrEnum):
    """Which era is spoken first (SPEC §7)."""

    AUTO = "auto"
    STATELESS = "stateless"
    LEGACY = "legacy"


class AuditLevel(StrEnum):
    """How loud our own log is about a server's requests for the model."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"


class UrlMode(StrEnum):
    """What becomes of a server's wish to have a person open a link."""

    DECLINE = "decline"
    ASK = "ask"


class PolicyAction(StrEnum):
    """What the operator says about the tools of a pattern."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


def _texts(value: object) -> object:
    """One string stands for a list of one."""
    return (value,) if isinstance(value, str) else value


def _arguments(value: object) -> object:
    if isinstance(value, str):
        raise ValueError('must be a list, one item per argument, like ["-y", "package"]')
    if not isinstance(value, (list, tuple)):
        return value
    items = cast("list[object]", value)
    return tuple(str(item) if _is_number(item) else item for item in items)


def _variables(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    return {
        name: str(item).lower() if isinstance(item, bool) or _is_number(item) else item
        for name, item in cast("_AnyMapping", value).items()
    }


def _variable_name(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise ValueError("is no name for a variable")
    return name


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("must not contain NUL")
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty")
    return value


def _url_mode(value: object) -> object:
    """`false` is the plain way to say that no link is ever asked about."""
    if value is False or value == "false":
        return UrlMode.DECLINE
    return value


def _rules(value: object) -> object:
    """Keep the order of the file: the first rule that matches holds."""
    if isinstance(value, tuple):
        return cast("tuple[object, ...]", value)
    if not isinstance(value, Mapping):
        raise ValueError("must map patterns to allow, ask or deny")
    rules = tuple((str(name), action) for name, action in cast("_AnyMapping", value).items())
    for pattern, action in rules:
        if action not in tuple(PolicyAction):
            raise ValueError(f'must say allow, ask or deny for "{show_name(pattern, limit=80)}"')
    return rules


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_Text: TypeAlias = Annotated[str, AfterValidator(_without_nul)]
_VariableName: TypeAlias = Annotated[str, AfterValidator(_variable_name)]
_Seconds: TypeAlias = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
_Patterns: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_texts)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ToolsConfig(_Section):
    """Which tools are registered and what the operator says about them, in file order.

    `resources` and `prompts`: the tools of ours for what a server offers of these; None, as `True`
    does, registers them, but only while there is something.
    """

    include: _Patterns | None = None
    exclude: _Patterns = ()
    resources: bool | None = None
    prompts: bool | None = None
    policy: Annotated[tuple[tuple[str, PolicyAction], ...], BeforeValidator(_rules)] = ()


class ElicitationConfig(_Section):
    """Whether the server may put forms to the person, and links too, and how long they have."""

    enabled: bool = True
    timeout: _Seconds = 300
    url: Annotated[UrlMode, BeforeValidator(_url_mode)] = UrlMode.DECLINE


class SamplingConfig(_Section):
    """Whether the server may use our model, which one, and how much; without `model` it may hint.

    `allowed_models` empty is any; `log_level` is where its requests are told.
    """

    enabled: bool = True
    model: Annotated[_Text, Field(max_length=200)] = ""
    max_tokens_cap: Annotated[int, Field(ge=1)] = 4096
    timeout: _Seconds = 30
    max_rpm: Annotated[int, Field(ge=1)] = 10
    max_tool_rounds: Annotated[int, Field(ge=0)] = 5
    allowed_models: _Patterns = ()
    log_level: AuditLevel = AuditLevel.INFO


class ServerConfig(LifecycleConfig, _Section):
    """One entry of `mcp_servers`; what its transport does not use has its default."""

    transport: Transport = Transport.STDIO
    command: Annotated[_Text, AfterValidator(_not_blank)] = ""
    args: Annotated[tuple[_Text, ...], BeforeValidator(_arguments)] = ()
    env: Annotated[dict[_VariableName, _Text], BeforeValidator(_variables)] = Field(
        default_factory=dict
    )
    cwd: _Text | None = None
    url: Url = ""
    headers: Headers = Field(default_factory=dict)
    ssl_verify: Verification = True
    client_cert: Certificate = ()
    client_key: FilePath | None = None
    identity_header: IdentityHeader | None = None
    auth: Auth = Auth.NONE
    oauth: OAuthConfig = OAuthConfig()
    skip_preflight: bool = False
    enabled: bool = True
    timeout: _Seconds = 300
    connect_timeout: _Seconds = 60
    protocol: Protocol = Protocol.AUTO
    trust: Trust = Trust.FULL
    tools: ToolsConfig = ToolsConfig()
    elicitation: ElicitationConfig = ElicitationConfig()
    sampling: SamplingConfig = SamplingConfig()

    _unset: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="before")
    @classmethod
    def _transport_by_address(cls, given: object) -> object:
        if isinstance(given, dict) and "url" in given and "transport" not in given:
            return {**cast("dict[str, object]", given), "transport": Transport.HTTP}
        return cast("object", given)

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        if not (self.command if self.transport is Transport.STDIO else self.url):
            raise ValueError("has neither the command nor the url that its transport needs")
        return self

    @property
    def unset(self) -> tuple[str, ...]:
        """The variables that the URL or a header needs and nobody set: it cannot be reached."""
        return self._unset

    def with_unset(self, variables: tuple[str, ...]) -> Self:
        """Return the same entry with these variables unset."""
        changed = self.model_copy()
        changed._unset = variables
        return changed

    @property
    def connection_limit(self) -> int:
        """How many connections it may have at the same time."""
        if self.max_connections is not None:
            return self.max_connections
        return STDIO_CONNECTIONS if self.transport is Transport.STDIO else NETWORK_CONNECTIONS

    @property
    def sent_headers(self) -> dict[str, str]:
        """What goes out with every request; a header of the entry wins over the identity."""
        identity = self.identity_header
        if identity is None or identity.name.lower() in map(str.lower, self.headers):
            return dict(self.headers)
        return {**self.headers, identity.name: identity.value}


class McpConfig(_Section):
    """The section `mcp`; `discovery_concurrency` 0 is unlimited.

    `client_metadata_url` is who we are to every authorization server that can read it (CIMD).
    """

    discovery_concurrency: Annotated[int, Field(ge=0, le=1_000)] = 4
    probe_interval: _Seconds = 300
    first_turn_wait: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = 5
    watch: bool = True
    client_metadata_url: DocumentUrl = ""
