"""Loads the configuration of a home: read, resolve, check, compose; and loads it again.

What cannot be used fails closed: at start with an error, later by keeping the last good one.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from gateway.config.channels import parse_channels
from gateway.config.document import parse_document, read_document
from gateway.config.dotenv import EnvFile, read_env_file
from gateway.config.findings import Findings
from gateway.config.home import Home
from gateway.config.interpolate import (
    Lookup,
    Resolver,
    Unset,
    control_findings,
    goes_out_raw,
    unset_finding,
)
from gateway.config.keys import check_keys
from gateway.config.schema import Config
from gateway.config.secrets import looked_up_secrets, secrets_of
from gateway.config.sections import SectionReader
from gateway.domain.errors import ConfigError
from gateway.domain.findings import Finding, Severity, error, warning
from gateway.providers.config import keys_from
from mcp_host.config import parse_mcp, parse_servers
from mcp_host.server_config import ServerConfig

if TYPE_CHECKING:
    from adapters.account import Problem

RESOLVED: Final = ("model", "platforms", "mcp_servers", "store")
"""The sections whose strings may hold placeholders."""

_LENIENT: Final = frozenset({"mcp", "mcp_servers", "platforms"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A configuration with what was found on the way.

    `shown` has the file's resolved sections with everything from the environment left as a
    placeholder; `unset` are the placeholders nobody set. `stale`: the file could not be used,
    `config` is the last good one.
    """

    config: Config
    findings: Findings
    secrets: frozenset[str] = field(repr=False)
    shown: Mapping[str, object] = field(repr=False)
    lookups: tuple[Lookup, ...] = field(default=(), repr=False)
    unset: tuple[Unset, ...] = ()
    from_file: bool = False
    stale: bool = False


def load(home: Home, *, environ: Mapping[str, str], workspace: Path | None = None) -> Loaded:
    """Load the configuration; no file means the defaults.

    A server that cannot be used is left out with a finding. `workspace` is the working directory
    of an in-process chat; without one, `gateway.workspace` is made absolute.

    Raises:
        ConfigError: The file cannot be parsed (file, line, column), or another section has a
            value that cannot be used (its path).
    """
    found = _assemble(home, environ=environ, workspace=workspace)
    fatal = _fatal(found.findings)
    if fatal:
        more = f" (and {len(fatal) - 1} more; see hermes config check)" if len(fatal) > 1 else ""
        raise ConfigError(fatal[0].path, f"{fatal[0].message}{more}")
    return found


def check(
    home: Home,
    *,
    environ: Mapping[str, str],
    workspace: Path | None = None,
    text: str | None = None,
) -> Findings:
    """Return all findings of a load, also of one that could not be used. Raises nothing.

    With `text` that is judged in the place of the file.
    """
    try:
        return _assemble(home, environ=environ, workspace=workspace, text=text).findings
    except ConfigError as problem:
        return Findings((error(problem.path, problem.problem),))


class Reloader:
    """Loads again while the gateway runs; a broken file or entry keeps its last good form."""

    def __init__(self, home: Home, *, environ: Mapping[str, str], loaded: Loaded) -> None:
        self._home = home
        self._environ = environ
        self._current = loaded

    @property
    def current(self) -> Loaded:
        """What is in force."""
        return self._current

    def reload(self) -> Loaded:
        """Load again and return what is in force now. Raises nothing."""
        try:
            fresh = load(
                self._home, environ=self._environ, workspace=self._current.config.workspace
            )
        except ConfigError as problem:
            findings = check(
                self._home, environ=self._environ, workspace=self._current.config.workspace
            )
            return self._keep(findings.items or (error(problem.path, problem.problem),))
        if self._current.from_file and not fresh.from_file:
            path = str(self._home.config_file)
            return self._keep((error(path, "is gone or empty; the running one stays in force"),))
        self._current = replace(fresh, config=self._with_last_good(fresh))
        return self._current

    def _keep(self, findings: Iterable[Finding]) -> Loaded:
        self._current = replace(self._current, findings=Findings(tuple(findings)), stale=True)
        return self._current

    def _with_last_good(self, fresh: Loaded) -> Config:
        """Keep the form in which an entry last worked when it is still there, but broken."""
        before = self._current.config.mcp_servers
        broken = _broken_servers(fresh.findings, before)
        kept = {name: before[name] for name in broken if name not in fresh.config.mcp_servers}
        if not kept:
            return fresh.config
        return replace(fresh.config, mcp_servers={**fresh.config.mcp_servers, **kept})


def _assemble(
    home: Home, *, environ: Mapping[str, str], workspace: Path | None, text: str | None = None
) -> Loaded:
    document = (
        read_document(home.config_file)
        if text is None
        else parse_document(text, name=str(home.config_file))
    )
    env = read_env_file(home.env_file)
    known, findings = check_keys(document or {})
    reader = SectionReader(known)
    gateway = reader.gateway()
    place = _workspace(workspace or Path(gateway.workspace), environ)
    resolver = Resolver(env_file=env.variables, environ=environ, workspace=place)
    resolution = {
        name: resolver.resolve(known[name], path=(name,)) for name in RESOLVED if name in known
    }
    resolved = {**known, **{name: found.value for name, found in resolution.items()}}
    unset = tuple(item for found in resolution.values() for item in found.unset)
    lookups = tuple(item for found in resolution.values() for item in found.lookups)
    unsafe = [
        finding
        for name in RESOLVED
        for finding in control_findings(resolved.get(name), path=(name,))
    ]
    reader = SectionReader(resolved)
    mcp, mcp_findings = parse_mcp(resolved.get("mcp"))
    servers, server_findings = _servers(
        resolved.get("mcp_servers"), unsafe, unset=unset, profile=home.profile
    )
    keys = keys_from({**environ, **env.variables})
    channels, channel_findings = parse_channels(resolved.get("platforms"), keys=keys)
    config = Config(
        workspace=place,
        model=reader.model(keys),
        channels=channels,
        gateway=reader.gateway(),
        approvals=reader.approvals(),
        access=reader.access(),
        tools=reader.tools(),
        mcp=mcp,
        mcp_servers=servers,
        store=reader.store(),
        logging=reader.logging(),
        platforms=reader.plain("platforms"),
        mcp_serve=reader.mcp_serve(),
        web=reader.plain("web"),
    )
    return Loaded(
        config=config,
        findings=Findings(
            (
                *_beside(home),
                *env.findings,
                *findings,
                *(unset_finding(item) for item in unset),
                *unsafe,
                *reader.findings,
                *mcp_findings,
                *server_findings,
                *channel_findings,
                *_platform_findings(resolved.get("platforms"), {**environ, **env.variables}),
            )
        ),
        secrets=_secrets(config, resolved, lookups, env),
        shown={name: found.shown for name, found in resolution.items()},
        lookups=lookups,
        unset=unset,
        from_file=document is not None,
    )


def _servers(
    raw: object, unsafe: list[Finding], *, unset: Iterable[Unset], profile: str
) -> tuple[Mapping[str, ServerConfig], tuple[Finding, ...]]:
    """Read the entries; one with an unsafe header or URL is left out."""
    if isinstance(raw, Mapping):
        entries = cast("Mapping[str, object]", raw)
        raw = {
            name: entry
            for name, entry in entries.items()
            if not any(_is_about(finding, name) for finding in unsafe)
        }
    missing: dict[str, list[str]] = {}
    for item in unset:
        section, *rest = map(str, item.path)
        if section == "mcp_servers" and len(rest) > 1 and goes_out_raw(tuple(rest)):
            missing.setdefault(rest[0], []).append(item.variable)
    parsed = parse_servers(raw, profile=profile, unset=missing)
    return parsed.servers, parsed.findings


def _platform_findings(raw: object, environ: Mapping[str, str]) -> Iterable[Finding]:
    """Judge the sections of the platforms that are supported; a bad one stops nothing else."""
    if not isinstance(raw, Mapping):
        return
    sections = cast("Mapping[str, object]", raw)
    problems: list[Problem] = []
    if "telegram" in sections:
        from adapters.telegram.config import parse_telegram

        problems += parse_telegram(sections["telegram"], environ=environ).problems
    if "slack" in sections:
        from adapters.slack.config import parse_slack

        problems += parse_slack(sections["slack"], environ=environ).problems
    for problem in problems:
        severity = Severity.ERROR if problem.severe else Severity.WARNING
        yield Finding(severity=severity, path=problem.path, message=problem.message)


def _is_about(finding: Finding, server: str) -> bool:
    return f"{finding.path}.".startswith(f"mcp_servers.{server}.")


def _broken_servers(findings: Findings, names: Iterable[str]) -> list[str]:
    """Return which of these servers are in the file and cannot be used as they are written."""
    if any(finding.path == "mcp_servers" for finding in findings.errors):
        return list(names)
    return [name for name in names if any(_is_about(finding, name) for finding in findings.errors)]


def _fatal(findings: Findings) -> list[Finding]:
    return [item for item in findings.errors if item.path.split(".")[0] not in _LENIENT]


def _beside(home: Home) -> Iterable[Finding]:
    other = home.path / "mcp_servers.yaml"
    if os.path.lexists(other):
        remedy = f"is not read; move its servers below mcp_servers: in {home.config_file}"
        yield warning(str(other), remedy)


def _workspace(path: Path, environ: Mapping[str, str]) -> Path:
    if path.parts[:1] == ("~",) and environ.get("HOME"):
        path = Path(environ["HOME"], *path.parts[1:])
    return Path(os.path.normpath(path.absolute()))


def _secrets(
    config: Config, resolved: Mapping[str, object], lookups: tuple[Lookup, ...], env: EnvFile
) -> frozenset[str]:
    found = {*env.variables.values(), *secrets_of(resolved), *looked_up_secrets(lookups)}
    models = [config.model, *config.model.fallbacks] if config.model else []
    found.update(model.api_key.get_secret_value() for model in models if model and model.api_key)
    return frozenset(text for text in found if text)
