"""Section `logging` of the configuration, as values."""

from dataclasses import dataclass
from enum import StrEnum


class LogLevel(StrEnum):
    """How much our own packages say; libraries are held at warnings whatever this is."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a line of stderr and `logs/gateway.log` is written."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingConfig:
    """Section `logging`."""

    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.TEXT
