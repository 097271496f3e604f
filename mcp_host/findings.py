"""What is said about the configuration of servers: a path, a message and how bad it is."""

from dataclasses import dataclass
from enum import StrEnum


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


def error(path: str, message: str) -> Finding:
    """Say that what `path` names is not used."""
    return Finding(path=path, message=message, severity=Severity.ERROR)


def warning(path: str, message: str) -> Finding:
    """Say that something about `path` is odd."""
    return Finding(path=path, message=message, severity=Severity.WARNING)
