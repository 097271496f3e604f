"""The sections `mcp_servers` and `mcp` of the configuration, read leniently.

An entry that cannot be used is skipped with one line, the rest loads. Values arrive interpolated;
findings never show one, since it may be a secret. Connects to nothing.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from mcp_host.sanitize import show_name

SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_DEVICE_NAMES: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)

_AnyMapping: TypeAlias = "Mapping[object, object]"

_UNSET: Final = object()
_LATER: Final[Mapping[str, object]] = {
    "url": _UNSET,
    "headers": _UNSET,
    "ssl_verify": True,
    "client_cert": _UNSET,
    "client_key": _UNSET,
    "identity_header": _UNSET,
    "auth": _UNSET,
    "oauth": _UNSET,
    "transport": "stdio",
    "type": "stdio",
    "supports_parallel_tool_calls": False,
    "skip_preflight": False,
    "keepalive_interval": _UNSET,
    "idle_timeout_seconds": 0,
    "max_lifetime_seconds": 0,
    "lifecycle": _UNSET,
    "lazy": False,
    "sampling": _UNSET,
    "max_connections": 1,
    "exclusive": False,
}
"""Documented keys without an effect yet, and the value for which that makes no difference."""

_LATER_TOOLS: Final[Mapping[str, object]] = {"resources": False, "prompts": False}
_LATER_ELICITATION: Final[Mapping[str, object]] = {"url": False}
_LATER_MCP: Final[Mapping[str, object]] = {"client_metadata_url": ""}


class Severity(StrEnum):
    """`ERROR`: what the path names is not used; `WARNING`: it is used, and something is odd."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line about the configuration; `path` is dotted (`mcp_servers.notes.args`)."""

    path: str
    message: str
    severity: Severity

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class Trust(StrEnum):
    """Whether a server's word that a tool only reads is needed before it may run unasked."""

    FULL = "full"
    UNTRUSTED = "untrusted"


class Protocol(StrEnum):
    """Which era is spoken first (SPEC §7)."""

    AUTO = "auto"
    STATELESS = "stateless"
    LEGACY = "legacy"


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


def _rules(value: object) -> object:
    """Keep the order of the file: the first rule that matches holds."""
    if isinstance(value, tuple):
        return cast("tuple[object, ...]", value)
    if not isinstance(value, Mapping):
        raise ValueError("must map patterns to allow, ask or deny")
    rules = tuple((str(name), action) for name, action in cast("_AnyMapping", value).items())
    for pattern, action in rules:
        if action not in tuple(PolicyAction):
            raise ValueError(f'must say allow, ask or deny for "{_shown(pattern)}"')
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
    """Which tools are registered and what the operator says about them, in file order."""

    include: _Patterns | None = None
    exclude: _Patterns = ()
    policy: Annotated[tuple[tuple[str, PolicyAction], ...], BeforeValidator(_rules)] = ()


class ElicitationConfig(_Section):
    """Whether the server may put forms to the person, and how long they have."""

    enabled: bool = True
    timeout: _Seconds = 300


class ServerConfig(_Section):
    """One entry of `mcp_servers`."""

    command: Annotated[_Text, AfterValidator(_not_blank)]
    args: Annotated[tuple[_Text, ...], BeforeValidator(_arguments)] = ()
    env: Annotated[dict[_VariableName, _Text], BeforeValidator(_variables)] = Field(
        default_factory=dict
    )
    cwd: _Text | None = None
    enabled: bool = True
    timeout: _Seconds = 300
    connect_timeout: _Seconds = 60
    protocol: Protocol = Protocol.AUTO
    trust: Trust = Trust.FULL
    tools: ToolsConfig = ToolsConfig()
    elicitation: ElicitationConfig = ElicitationConfig()


class McpConfig(_Section):
    """The section `mcp`; `discovery_concurrency` 0 is unlimited."""

    discovery_concurrency: Annotated[int, Field(ge=0, le=1_000)] = 4
    probe_interval: _Seconds = 300
    first_turn_wait: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = 5
    watch: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedServers:
    """The entries that can be used; `broken` names those that are there and cannot."""

    servers: Mapping[str, ServerConfig]
    findings: tuple[Finding, ...] = ()
    broken: tuple[str, ...] = ()


def parse_servers(raw: object) -> ParsedServers:
    """Read `mcp_servers`; every entry that cannot be used costs one finding and nothing else."""
    if raw is None:
        return ParsedServers(servers={})
    if not isinstance(raw, Mapping):
        finding = _error("mcp_servers", "must map names to servers; all of it is skipped")
        return ParsedServers(servers={}, findings=(finding,))
    servers: dict[str, ServerConfig] = {}
    findings: list[Finding] = []
    broken: list[str] = []
    for key, entry in cast("_AnyMapping", raw).items():
        name = str(key)
        path = f"mcp_servers.{_shown(name)}"
        if not SERVER_NAME.fullmatch(name) or _DEVICE_NAMES.fullmatch(name):
            findings.append(_error(path, "is no name for a server (A-Z a-z 0-9 . _ -); skipped"))
            continue
        found = _read_entry(path, entry)
        findings.extend(found.findings)
        if found.server is not None:
            servers[name] = found.server
        elif found.malformed:
            broken.append(name)
    return ParsedServers(servers=servers, findings=tuple(findings), broken=tuple(broken))


def parse_mcp(raw: object) -> tuple[McpConfig, tuple[Finding, ...]]:
    """Read `mcp`; a value that cannot be used leaves that key's default."""
    if raw is None:
        return McpConfig(), ()
    if not isinstance(raw, Mapping):
        return McpConfig(), (_error("mcp", "must be a mapping; its defaults hold"),)
    section = _given(cast("_AnyMapping", raw))
    findings = _check_keys("mcp", section, McpConfig.model_fields, _LATER_MCP)
    try:
        return McpConfig.model_validate(section), tuple(findings)
    except ValidationError as error:
        for key, message in _problems(error):
            findings.append(_error(f"mcp.{key}", f"{message}; its default holds"))
            section.pop(key.partition(".")[0], None)
    return McpConfig.model_validate(section), tuple(findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    server: ServerConfig | None = None
    findings: tuple[Finding, ...] = ()
    malformed: bool = False


def _read_entry(path: str, raw: object) -> _Entry:
    def skipped(at: str, problem: str) -> _Entry:
        return _Entry(findings=(_error(at, f"{problem}; the server is skipped"),), malformed=True)

    if not isinstance(raw, Mapping):
        return skipped(path, "has no settings" if raw is None else "is not a mapping of settings")
    entry = _given(cast("_AnyMapping", raw))
    if "command" not in entry:
        if "url" in entry:
            problem = "url is not supported by this version; the server is skipped"
            return _Entry(findings=(_warning(path, problem),))
        return skipped(path, "has no command")
    findings = _check_keys(path, entry, ServerConfig.model_fields, _LATER)
    for key, model, later in (
        ("tools", ToolsConfig, _LATER_TOOLS),
        ("elicitation", ElicitationConfig, _LATER_ELICITATION),
    ):
        section = entry.get(key)
        if section is None:
            continue
        if not isinstance(section, Mapping):
            return skipped(f"{path}.{key}", "must be a mapping")
        given = _given(cast("_AnyMapping", section))
        findings += _check_keys(f"{path}.{key}", given, model.model_fields, later)
        entry[key] = given
    findings += _settle_trust(path, cast("_AnyMapping", raw), entry)
    try:
        server = ServerConfig.model_validate(entry)
    except ValidationError as error:
        (key, message), *more = _problems(error)
        others = f" (and {len(more)} more)" if more else ""
        return skipped(f"{path}.{key}", f"{message}{others}")
    if server.tools.include == ():
        findings.append(_warning(f"{path}.tools.include", "is empty: no tool is registered"))
    return _Entry(server=server, findings=tuple(findings))


def _settle_trust(path: str, raw: _AnyMapping, entry: dict[str, object]) -> list[Finding]:
    """Fail closed: what is neither word means untrusted, an empty value too."""
    if "trust" not in raw or entry.get("trust") in tuple(Trust):
        return []
    entry["trust"] = Trust.UNTRUSTED
    return [_warning(f"{path}.trust", "is neither full nor untrusted: taken as untrusted")]


def _given(section: _AnyMapping) -> dict[str, object]:
    """Drop empty values: a key without one means its default."""
    return {str(key): value for key, value in section.items() if value is not None}


def _check_keys(
    path: str, section: Mapping[str, object], known: Iterable[str], later: Mapping[str, object]
) -> list[Finding]:
    names = (*known, *later)
    findings: list[Finding] = []
    for key, value in section.items():
        at = f"{path}.{_shown(key)}"
        if key in later and value != later[key]:
            findings.append(_warning(at, "is not supported by this version and has no effect"))
        elif key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            findings.append(_warning(at, f"is not a known key{hint}"))
    return findings


def _problems(error: ValidationError) -> list[tuple[str, str]]:
    """Return where and what, without the values themselves."""
    found: list[tuple[str, str]] = []
    for detail in error.errors(include_input=False, include_url=False, include_context=False):
        where = ".".join(_shown(str(part)) for part in detail["loc"] if part != "[key]")
        message = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
        found.append((where, message))
    return found


def _shown(key: str) -> str:
    return show_name(key, limit=80)


def _error(path: str, message: str) -> Finding:
    return Finding(path=path, message=message, severity=Severity.ERROR)


def _warning(path: str, message: str) -> Finding:
    return Finding(path=path, message=message, severity=Severity.WARNING)
