"""The lines of `logs/agent.log`: what the agent and its servers did. Arguments and texts stay out.

Until `gateway.telemetry.logging.set_up` gives it a file, the lines go where other logs go.
"""

import json
import logging
import re
from typing import Final

LOGGER_NAME: Final = "hermes.agent"
MAX_ERROR: Final = 200

_logger = logging.getLogger(LOGGER_NAME)
_BARE: Final = re.compile(r"[^\s\"=]+")


def model_call(
    *,
    conversation: object,
    model: str,
    ms: float,
    outcome: str,
    input_tokens: int = 0,
    output_tokens: int = 0,
    error: str = "",
) -> None:
    """Note one request to a model."""
    _note(
        "model_call",
        conversation=conversation,
        model=model,
        ms=round(ms),
        outcome=outcome,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        error=error,
    )


def tool_call(
    *, conversation: object, server: str, tool: str, ms: float, outcome: str, error: str = ""
) -> None:
    """Note one tool call, also one that was refused; `error` is cut to its first line."""
    _note(
        "tool_call",
        conversation=conversation,
        server=server,
        tool=tool,
        ms=round(ms),
        outcome=outcome,
        error=error,
    )


def connect(*, server: str, ms: float, outcome: str, error: str = "") -> None:
    """Note one attempt to connect a server."""
    _note("connect", server=server, ms=round(ms), outcome=outcome, error=error)


def discovery(*, server: str, ms: float, tools: int) -> None:
    """Note that a server's tools were listed."""
    _note("discovery", server=server, ms=round(ms), tools=tools)


def park(*, server: str, reason: str, retry_in: float | None = None) -> None:
    """Note that a server is left alone for `retry_in` seconds, None until somebody acts."""
    _note(
        "park", server=server, reason=reason, retry_in=None if retry_in is None else round(retry_in)
    )


def refresh(*, server: str, ms: float, tools: int) -> None:
    """Note that a server's tools were listed again because they changed."""
    _note("refresh", server=server, ms=round(ms), tools=tools)


def _note(event: str, **fields: object) -> None:
    if not _logger.isEnabledFor(logging.INFO):
        return
    pairs = (f"{name}={_value(value)}" for name, value in fields.items() if value not in {None, ""})
    _logger.info("%s %s", event, " ".join(pairs))


def _value(value: object) -> str:
    lines = str(value).splitlines() or [""]
    text = lines[0] if len(lines[0]) <= MAX_ERROR else lines[0][: MAX_ERROR - 1] + "…"
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
