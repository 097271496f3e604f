"""What loading a configuration has to say: all its findings, and how paths and keys are written."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.domain.findings import Finding, Severity, warning

KeyPath: TypeAlias = tuple[str | int, ...]

_ALIKE: Final = 0.6


@dataclass(frozen=True, slots=True)
class Findings:
    """All findings of one load, in the order they were made."""

    items: tuple[Finding, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What is not in force as written."""
        return tuple(item for item in self.items if item.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What works, but hardly as meant."""
        return tuple(item for item in self.items if item.severity is Severity.WARNING)

    def as_json(self) -> dict[str, list[dict[str, str]]]:
        """Return `{errors: [{path, message}], warnings: […]}`."""
        return {"errors": _rows(self.errors), "warnings": _rows(self.warnings)}


def dotted(path: KeyPath) -> str:
    """Write a path as people do: `mcp_servers.files.args[2]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=_ALIKE)
    return found[0] if found else None


def unknown_key(path: KeyPath, known: Iterable[str]) -> Finding:
    """Say that the last part of `path` is read by nobody, and what was probably meant."""
    meant = nearest(str(path[-1]), known)
    hint = f"; did you mean {dotted((*path[:-1], meant))}?" if meant else ""
    return warning(dotted(path), f"unknown key, ignored{hint}")


def _rows(findings: Iterable[Finding]) -> list[dict[str, str]]:
    return [{"path": item.path, "message": item.message} for item in findings]
