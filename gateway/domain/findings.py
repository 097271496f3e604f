"""What is said about a configuration: where, what, and whether it is in force. Reads nothing."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """An `ERROR` means that something is not in force as it is written."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One sentence about one place (`mcp_servers.notes.args`); it never holds a value.

    A value could be a secret.
    """

    severity: Severity
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity.value}: {self.path}: {self.message}"


def error(path: str, message: str) -> Finding:
    """Make an error."""
    return Finding(severity=Severity.ERROR, path=path, message=message)


def warning(path: str, message: str) -> Finding:
    """Make a warning."""
    return Finding(severity=Severity.WARNING, path=path, message=message)
