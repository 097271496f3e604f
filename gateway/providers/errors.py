"""Turns every failure of the model library into one `ModelError`. Only loaded with the library.

What a provider wrote is quoted only where a person can act on it (a refused request), shortened
and without anything that looks like a key.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, cast

import httpx2
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)

from gateway.domain.errors import (
    ContextTooLong,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelUnauthorized,
    ModelUnavailable,
)
from gateway.domain.text import shorten, show_escapes

_QUOTE_LIMIT: Final = 200
_KEY_LIKE: Final = re.compile(
    r"\b(?:sk|pk|rk|key|gsk|xai)[-_][\w*.-]{6,}|\bAIza[\w-]{10,}|\bBearer\s+\S+", re.IGNORECASE
)
_TOO_LONG_TYPES: Final = frozenset({"exceed_context_size_error", "context_window_exceeded"})
"""What servers the library does not know (llama.cpp and its kin) call an overflow."""

_TOO_LARGE: Final = 413
_TRY_AGAIN: Final = frozenset({408, 409, 425})
_CLIENT_ERRORS: Final = range(400, 500)


@contextmanager
def translated(model: str, *, secret: str) -> Generator[None]:
    """Raise a `ModelError` for whatever the library raises inside; `secret` is never quoted.

    The cause is kept unless its text holds a key, as a refused one may: tracebacks are logged.
    """
    try:
        yield
    except (
        AgentRunError,
        UserError,
        httpx2.HTTPError,
        httpx2.StreamError,
        OSError,
        ValueError,
    ) as error:
        cause = None if _leaks(error, secret) else error
        raise _translate(error, model, secret) from cause


def _translate(error: Exception, model: str, secret: str) -> ModelError:
    match error:
        case ModelAPIError():
            return _of_provider(error, model, secret=secret)
        case ContentFilterError():
            return ModelRejected(model, "its content filter stopped the answer")
        case UserError():
            return ModelRejected(
                model, f"the request does not suit it: {_quoted(error.message, secret)}"
            )
        case httpx2.TimeoutException():
            return ModelUnavailable(model, "no answer in time")
        case httpx2.HTTPError() | httpx2.StreamError() | OSError():
            return ModelUnavailable(model, "the connection broke")
        case _:
            return ModelUnavailable(model, "its answer could not be read")


def _leaks(error: BaseException, secret: str) -> bool:
    """Return whether a key stands in the text of an error or of what it came from."""
    current: BaseException | None = error
    while current is not None:
        text = str(current)
        if (secret and secret in text) or _KEY_LIKE.search(text):
            return True
        current = current.__cause__ or current.__context__
    return False


# One table, read top down: the library's classes overlap, so the order decides.
def _of_provider(error: ModelAPIError, model: str, *, secret: str) -> ModelError:  # noqa: C901
    match error:
        case ModelRateLimitError():
            return ModelRateLimited(model, error.retry_after)
        case ModelQuotaExceededError():
            return ModelRejected(model, "its quota or credit is used up")
        case ModelOverloadedError():
            return ModelUnavailable(model, "overloaded")
        case ModelUnavailableError() | ModelServerError():
            return ModelUnavailable(model, f"the service failed{_status(error)}")
        case ModelTimeoutError():
            return ModelUnavailable(model, "no answer in time")
        case ModelConnectionError():
            return ModelUnavailable(model, _broken(error))
        case ModelContextWindowExceededError():
            return ContextTooLong(model)
        case ModelAuthenticationError():
            return ModelUnauthorized(model, f"the key was refused{_status(error)}")
        case ModelNotFoundError():
            return ModelRejected(model, f"no such model or address{_status(error)}")
        case ModelHTTPError() if error.status_code == _TOO_LARGE or _overflows(error):
            return ContextTooLong(model)
        case ModelRequestRejectedError():
            return ModelRejected(model, _refusal(error, secret))
        case ModelHTTPError() if error.status_code in _TRY_AGAIN:
            return ModelUnavailable(model, f"the service failed{_status(error)}")
        case ModelHTTPError() if error.status_code in _CLIENT_ERRORS:
            return ModelRejected(model, _refusal(error, secret))
        case _:
            return ModelUnavailable(model, "its answer broke off or could not be read")


def _broken(error: ModelConnectionError) -> str:
    if error.phase in {"pool", "connect"}:
        return "it could not be reached"
    return "the connection broke before the answer was complete"


def _overflows(error: ModelHTTPError) -> bool:
    return not _TOO_LONG_TYPES.isdisjoint({error.provider_error_type, error.provider_error_code})


def _status(error: ModelAPIError) -> str:
    return f" ({error.status_code})" if isinstance(error, ModelHTTPError) else ""


def _refusal(error: ModelAPIError, secret: str) -> str:
    said = _quoted(_message(error.body), secret)
    return f"the request was refused{_status(error)}" + (f": {said}" if said else "")


def _message(body: object) -> str:
    """Return the message of an error body in the shapes providers use, "" when there is none."""
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, object]", body)
    if isinstance(inner := fields.get("error"), dict):
        return _message(cast("object", inner))
    message = fields.get("message")
    return message if isinstance(message, str) else ""


def _quoted(text: str, secret: str) -> str:
    """Make a provider's words fit for a log line and a chat."""
    if secret:
        text = text.replace(secret, "••••")
    text = _KEY_LIKE.sub("••••", text)
    return shorten(show_escapes(" ".join(text.split())), _QUOTE_LIMIT)
