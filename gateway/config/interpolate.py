"""`${VAR}` in configured strings: the one resolver of load, test, login, add and the watcher.

Looks names up in the profile's `.env`, then in the process environment. Reads no file.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from gateway.config.findings import KeyPath, dotted
from gateway.domain.findings import Finding, error, warning

# A default may hold placeholders of its own, one level deep.
_PLACEHOLDER: Final = re.compile(r"\$\{(?P<body>(?:[^{}]|\$\{[^{}]*\})*)\}")
_FORBIDDEN: Final = re.compile(r"[\r\n\0]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unset:
    """A placeholder that stayed literal: nobody set its variable."""

    path: KeyPath
    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """A value of the environment that went into the configuration at `path`."""

    path: KeyPath
    variable: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A resolved value; `shown` is the same with everything from the environment left unresolved."""

    value: object = field(repr=False)
    shown: object
    unset: tuple[Unset, ...]
    lookups: tuple[Lookup, ...]


class Resolver:
    """Resolves placeholders once: what a value contains is never expanded again."""

    def __init__(
        self, *, env_file: Mapping[str, str], environ: Mapping[str, str], workspace: Path
    ) -> None:
        self._env_file = env_file
        self._environ = environ
        self._context = {
            "workspaceFolder": str(workspace),
            "workspaceFolderBasename": workspace.name,
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        if "HOME" in environ:
            self._context["userHome"] = environ["HOME"]

    def look_up(self, variable: str) -> str | None:
        """Return a variable of the profile, None when it is not set; "" is set."""
        if variable in self._env_file:
            return self._env_file[variable]
        return self._environ.get(variable)

    def resolve(self, value: object, *, path: KeyPath) -> Resolved:
        """Resolve every string in `value` at any depth; keys are left alone."""
        walk = _Walk(self)
        resolved, shown = walk.resolve(value, path)
        return Resolved(
            value=resolved, shown=shown, unset=tuple(walk.unset), lookups=tuple(walk.lookups)
        )

    def context(self, name: str) -> str | None:
        """Return a context variable; its name is case-sensitive."""
        return self._context.get(name)


class _Walk:
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self.unset: list[Unset] = []
        self.lookups: list[Lookup] = []

    def resolve(self, value: object, path: KeyPath) -> tuple[object, object]:
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, Mapping):
            mapping = cast("Mapping[str, object]", value)
            pairs = {key: self.resolve(item, (*path, key)) for key, item in mapping.items()}
            return (
                {key: pair[0] for key, pair in pairs.items()},
                {key: pair[1] for key, pair in pairs.items()},
            )
        if isinstance(value, Sequence):
            items = [
                self.resolve(item, (*path, at))
                for at, item in enumerate(cast("Sequence[object]", value))
            ]
            return [item[0] for item in items], [item[1] for item in items]
        return value, value

    def _text(self, text: str, path: KeyPath) -> tuple[str, str]:
        resolved: list[str] = []
        shown: list[str] = []
        end = 0
        for match in _PLACEHOLDER.finditer(text):
            literal = text[end : match.start()]
            value, display = self._placeholder(match[0], match["body"], path)
            resolved += literal, value
            shown += literal, display
            end = match.end()
        return "".join([*resolved, text[end:]]), "".join([*shown, text[end:]])

    def _placeholder(self, written: str, body: str, path: KeyPath) -> tuple[str, str]:
        context = self._resolver.context(body)
        if context is not None:
            return context, context
        name, has_default, default = body.partition(":-")
        variable = name.removeprefix("env:")
        value = self._resolver.look_up(variable)
        if value is not None:
            self.lookups.append(Lookup(path=path, variable=variable, value=value))
            return value, written
        if has_default:
            return self._text(default, path)
        self.unset.append(Unset(path=path, variable=variable))
        return written, written


def unset_finding(unset: Unset) -> Finding:
    """Say which variable is missing, and for which server or section and key."""
    head, *rest = unset.path
    where = f"section {head}"
    if head in {"mcp_servers", "platforms"} and rest:
        where = f"{'server' if head == 'mcp_servers' else 'platform'} {rest.pop(0)}"
    key = f", key {dotted(tuple(rest))}" if rest else ""
    message = (
        f"variable {unset.variable} is not set ({where}{key}); the placeholder stays as written"
    )
    return warning(dotted(unset.path), message)


def control_findings(value: object, *, path: KeyPath) -> tuple[Finding, ...]:
    """Report every header and URL below `path` that holds CR, LF or NUL; they must not be used."""
    if isinstance(value, str):
        found = _FORBIDDEN.search(value) if goes_out_raw(path) else None
        names = {"\r": "a carriage return", "\n": "a line feed", "\0": "a NUL"}
        return (error(dotted(path), f"holds {names[found[0]]}; refused"),) if found else ()
    findings: list[Finding] = []
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            if path and path[-1] == "headers" and _FORBIDDEN.search(key):
                findings.append(
                    error(dotted(path), "a header name holds a control character; refused")
                )
                continue
            findings += control_findings(item, path=(*path, key))
    elif isinstance(value, Sequence):
        for at, item in enumerate(cast("Sequence[object]", value)):
            findings += control_findings(item, path=(*path, at))
    return tuple(findings)


def goes_out_raw(path: KeyPath) -> bool:
    """Tell whether the value at `path` is sent as it is: a header, or a URL."""
    names = [str(part) for part in path]
    if "headers" in names[:-1] or names[-2:] == ["identity_header", "value"]:
        return True
    return bool(names) and (
        names[-1] in {"url", "uri", "issuer"} or names[-1].endswith(("_url", "_uri"))
    )
