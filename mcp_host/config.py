"""The sections `mcp_servers` and `mcp` of the configuration, read leniently.

An entry that cannot be used is skipped with one line, the rest loads. Values arrive interpolated;
findings never show one, since it may be a secret. Connects to nothing.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from pydantic import ValidationError

from gateway.domain.findings import Finding, error, warning
from mcp_host.lifecycle_keys import settle_lifecycle
from mcp_host.network_config import UNSET
from mcp_host.oauth.config import Auth, OAuthConfig
from mcp_host.sanitize import show_name
from mcp_host.server_config import (
    LATER,
    LATER_ELICITATION,
    LATER_MCP,
    LATER_OAUTH,
    LATER_SAMPLING,
    LATER_TOOLS,
    ElicitationConfig,
    McpConfig,
    SamplingConfig,
    ServerConfig,
    ToolsConfig,
    Trust,
)
from mcp_host.transport_keys import NoTransport, settle_transport

SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_DEVICE_NAMES: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)

DEFAULT_PROFILE: Final = "default"

_AnyMapping: TypeAlias = "Mapping[object, object]"

_NONE_UNSET: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedServers:
    """The entries that can be used; `broken` names those that are there and cannot."""

    servers: Mapping[str, ServerConfig]
    findings: tuple[Finding, ...] = ()
    broken: tuple[str, ...] = ()


def parse_servers(
    raw: object,
    *,
    profile: str = DEFAULT_PROFILE,
    unset: Mapping[str, Sequence[str]] = _NONE_UNSET,
) -> ParsedServers:
    """Read `mcp_servers`; every entry that cannot be used costs one finding and nothing else.

    `unset` has, by server, the variables that its URL or headers need and nobody set: such a
    server is there, and cannot be reached.
    """
    if raw is None:
        return ParsedServers(servers={})
    if not isinstance(raw, Mapping):
        finding = error("mcp_servers", "must map names to servers; all of it is skipped")
        return ParsedServers(servers={}, findings=(finding,))
    servers: dict[str, ServerConfig] = {}
    findings: list[Finding] = []
    broken: list[str] = []
    folded: dict[str, str] = {}
    for key, entry in cast("_AnyMapping", raw).items():
        name = str(key)
        path = f"mcp_servers.{_shown(name)}"
        if not SERVER_NAME.fullmatch(name) or _DEVICE_NAMES.fullmatch(name):
            findings.append(error(path, "is no name for a server (A-Z a-z 0-9 . _ -); skipped"))
            continue
        # Its files would be the other's, where a disk does not tell their letters apart.
        twin = folded.setdefault(name.lower(), name)
        if twin != name:
            findings.append(error(path, f"differs from {twin} in capitals alone; skipped"))
            continue
        found = _read_entry(path, entry, profile=profile, unset=tuple(unset.get(name, ())))
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
        return McpConfig(), (error("mcp", "must be a mapping; its defaults hold"),)
    section = _given(cast("_AnyMapping", raw))
    findings = _check_keys("mcp", section, McpConfig.model_fields, LATER_MCP)
    try:
        return McpConfig.model_validate(section), tuple(findings)
    except ValidationError as problem:
        for key, message in _problems(problem):
            findings.append(error(f"mcp.{key}", f"{message}; its default holds"))
            section.pop(key.partition(".")[0], None)
    return McpConfig.model_validate(section), tuple(findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    server: ServerConfig | None = None
    findings: tuple[Finding, ...] = ()
    malformed: bool = False


def _read_entry(path: str, raw: object, *, profile: str, unset: tuple[str, ...]) -> _Entry:
    def skipped(at: str, problem: str) -> _Entry:
        return _Entry(findings=(error(at, f"{problem}; the server is skipped"),), malformed=True)

    if not isinstance(raw, Mapping):
        return skipped(path, "has no settings" if raw is None else "is not a mapping of settings")
    entry = _given(cast("_AnyMapping", raw))
    try:
        findings = settle_transport(path, entry, profile=profile)
    except NoTransport as problem:
        return skipped(path, str(problem))
    findings += settle_lifecycle(path, entry)
    findings += _check_keys(path, entry, ServerConfig.model_fields, LATER)
    for key, model, later in (
        ("tools", ToolsConfig, LATER_TOOLS),
        ("elicitation", ElicitationConfig, LATER_ELICITATION),
        ("sampling", SamplingConfig, LATER_SAMPLING),
        ("oauth", OAuthConfig, LATER_OAUTH),
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
        server = ServerConfig.model_validate(entry, context={UNSET: unset}).with_unset(unset)
    except ValidationError as problem:
        (key, message), *more = _problems(problem)
        others = f" (and {len(more)} more)" if more else ""
        return skipped(f"{path}.{key}", f"{message}{others}")
    findings += _check_sign_in(path, server, section_given="oauth" in entry)
    if server.tools.include == ():
        findings.append(warning(f"{path}.tools.include", "is empty: no tool is registered"))
    return _Entry(server=server, findings=tuple(findings))


def _check_sign_in(path: str, server: ServerConfig, *, section_given: bool) -> list[Finding]:
    """Say which keys a sign-in makes idle, or lacks."""
    if server.auth is Auth.NONE:
        idle = warning(f"{path}.oauth", "has no effect without auth: oauth")
        return [idle] if section_given else []
    header = next((name for name in server.headers if name.lower() == "authorization"), None)
    if header is None:
        return []
    return [warning(f"{path}.headers.{header}", "gives way to the sign-in of auth: oauth")]


def _settle_trust(path: str, raw: _AnyMapping, entry: dict[str, object]) -> list[Finding]:
    """Fail closed: what is neither word means untrusted, an empty value too."""
    if "trust" not in raw or entry.get("trust") in tuple(Trust):
        return []
    entry["trust"] = Trust.UNTRUSTED
    return [warning(f"{path}.trust", "is neither full nor untrusted: taken as untrusted")]


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
            findings.append(warning(at, "is not supported by this version and has no effect"))
        elif key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            findings.append(warning(at, f"is not a known key{hint}"))
    return findings


def _problems(problem: ValidationError) -> list[tuple[str, str]]:
    """Return where and what, without the values themselves."""
    found: list[tuple[str, str]] = []
    for detail in problem.errors(include_input=False, include_url=False, include_context=False):
        where = ".".join(_shown(str(part)) for part in detail["loc"] if part != "[key]")
        message = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
        found.append((where, message))
    return found


def _shown(key: str) -> str:
    return show_name(key, limit=80)
