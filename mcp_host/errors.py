"""How the SDK's and the transport's failures read to us. Raises nothing itself.

The errors other parts see are `gateway.domain.errors.ToolHostError` and its kinds.
"""

from typing import Final, cast

from pydantic import ValidationError

from gateway.domain.text import shorten, strip_terminal
from mcp_host.sanitize import clean_text

MAX_REASON: Final = 500


def leaf(error: BaseException) -> BaseException:
    """Return the first real error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        error = group.exceptions[0]
    return error


def reason_of(error: BaseException) -> str:
    """Return one line a person can read, never empty."""
    inner = leaf(error)
    if isinstance(inner, ValidationError):
        return f"malformed answer ({inner.title}: {inner.error_count()} problem(s))"
    text = one_line(str(inner))
    return text or type(inner).__name__


def one_line(text: str) -> str:
    """Fold untrusted text to one short line without terminal escapes and hidden characters."""
    return shorten(" ".join(clean_text(strip_terminal(text)).split()), MAX_REASON)
