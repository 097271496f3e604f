"""How a log line is written: redacted, on one line, with nothing that steers a terminal."""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Final, cast

from gateway.telemetry.redact import Redactor

# This package may not import the domain; the domain's text module shows the same characters.
_STEERING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069]"
)


class SafeFormatter(logging.Formatter):
    """Base of our formatters: message, arguments and exception are made safe after formatting."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def message_of(self, record: logging.LogRecord) -> str:
        """Return the message on one line; a template whose arguments do not fit is kept alone."""
        try:
            message = record.getMessage()
        # A faulty log call must neither raise nor print its data.
        except Exception:  # noqa: BLE001
            message = f"{record.msg} (arguments do not fit)"
        return self.one_line(message)

    def ids_of(self, record: logging.LogRecord) -> dict[str, str]:
        """Return what `ContextFilter` put on the record."""
        ids = cast("dict[str, str]", getattr(record, "ids", {}))
        return {name: self.one_line(value) for name, value in ids.items()}

    def trace_of(self, record: logging.LogRecord) -> str:
        """Return the exception and stack texts, "" without one."""
        parts: list[str] = []
        if record.exc_info:
            parts.append(self.formatException(record.exc_info))
        if record.stack_info:
            parts.append(self.formatStack(record.stack_info))
        return self.safe("\n".join(parts))

    def one_line(self, text: str) -> str:
        """Return the safe text with its line ends written out: a line cannot be forged."""
        return self.safe(text).replace("\n", "\\n")

    def safe(self, text: str) -> str:
        """Drop what steers a terminal first: it could split a secret; then redact."""
        clean = _STEERING.sub("", text.replace("\r\n", "\n"))
        return self._redactor.redact(clean)


class TextFormatter(SafeFormatter):
    """`TIME LEVEL logger [ids] message`, then the traceback, indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        ids = " ".join(f"{name}={value}" for name, value in self.ids_of(record).items())
        where = f" [{ids}]" if ids else ""
        line = (
            f"{_time_of(record)} {record.levelname} {record.name}{where} {self.message_of(record)}"
        )
        trace = self.trace_of(record)
        return f"{line}\n  " + trace.replace("\n", "\n  ") if trace else line


class JsonFormatter(SafeFormatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            **self.ids_of(record),
            "message": self.message_of(record),
        }
        trace = self.trace_of(record)
        if trace:
            fields["exception"] = trace
        return json.dumps(fields, ensure_ascii=False)


class AgentFormatter(SafeFormatter):
    """`TIME message`: the message is already `key=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return f"{_time_of(record)} {self.message_of(record)}"


def _time_of(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
