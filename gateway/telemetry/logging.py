"""Sets logging up for one process and takes it down again. Redaction sits on the handlers."""

import io
import logging
import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final, TextIO, assert_never

from gateway.telemetry.agent_log import LOGGER_NAME as AGENT
from gateway.telemetry.config import LogFormat, LoggingConfig
from gateway.telemetry.context import ContextFilter
from gateway.telemetry.formatting import (
    AgentFormatter,
    JsonFormatter,
    SafeFormatter,
    TextFormatter,
)
from gateway.telemetry.redact import Redactor

GATEWAY_LOG: Final = "gateway.log"
AGENT_LOG: Final = "agent.log"
MAX_BYTES: Final = 10 * 1024 * 1024
KEPT_FILES: Final = 5

# Libraries log statements and URLs with their data below warnings, so they stay above it.
_OURS: Final = ("gateway", "adapters", "mcp_host", "store", "hermes")


@contextmanager
def set_up(
    config: LoggingConfig,
    *,
    redactor: Redactor,
    logs: Path | None,
    stream: TextIO | None,
    max_bytes: int = MAX_BYTES,
) -> Generator[None]:
    """Log to `stream` and to the files in `logs`, each when given, until the block ends.

    Raises:
        OSError: A log file cannot be opened.
    """
    root = logging.getLogger()
    formatter = _formatter(config.format, redactor)
    with ExitStack() as stack:
        stack.enter_context(_level(root, logging.WARNING))
        for name in _OURS:
            stack.enter_context(_level(logging.getLogger(name), _number(config)))
        if stream is not None:
            stack.enter_context(_attached(root, _StreamHandler(stream), formatter))
        if logs is not None:
            main = _FileHandler(logs / GATEWAY_LOG, max_bytes)
            stack.enter_context(_attached(root, main, formatter))
            agent = logging.getLogger(AGENT)
            narration = _FileHandler(logs / AGENT_LOG, max_bytes)
            stack.enter_context(_attached(agent, narration, AgentFormatter(redactor)))
            stack.enter_context(_level(agent, logging.INFO))
            stack.enter_context(_alone(agent))
        yield


class _QuietErrors(logging.Handler):
    """A line that cannot be written is reported once, without what the line said."""

    _reported = False

    def handleError(self, record: logging.LogRecord) -> None:
        if self._reported:
            return
        self._reported = True
        error = sys.exc_info()[1]
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        os.write(2, f"hermes: a log line could not be written ({reason})\n".encode())


class _StreamHandler(_QuietErrors, logging.StreamHandler[TextIO]):
    pass


class _FileHandler(_QuietErrors, RotatingFileHandler):
    def __init__(self, path: Path, max_bytes: int) -> None:
        super().__init__(
            path,
            maxBytes=max_bytes,
            backupCount=KEPT_FILES,
            encoding="utf-8",
            errors="backslashreplace",
        )

    # The library's stubs give the narrower type of its own default encoding.
    def _open(self) -> TextIO:  # pyright: ignore[reportIncompatibleMethodOverride]
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return io.TextIOWrapper(
            os.fdopen(descriptor, "ab", buffering=0),
            encoding=self.encoding,
            errors=self.errors,
            write_through=True,
        )


def _number(config: LoggingConfig) -> int:
    return logging.getLevelNamesMapping()[config.level.upper()]


def _formatter(kind: LogFormat, redactor: Redactor) -> SafeFormatter:
    match kind:
        case LogFormat.TEXT:
            return TextFormatter(redactor)
        case LogFormat.JSON:
            return JsonFormatter(redactor)
        case _:
            assert_never(kind)


@contextmanager
def _level(logger: logging.Logger, level: int) -> Generator[None]:
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _alone(logger: logging.Logger) -> Generator[None]:
    before = logger.propagate
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = before


@contextmanager
def _attached(
    logger: logging.Logger, handler: logging.Handler, formatter: SafeFormatter
) -> Generator[None]:
    handler.setFormatter(formatter)
    handler.addFilter(ContextFilter())
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
