"""What goes wrong with a request, as the API says it: a status, a code and a sentence."""

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from gateway.domain.errors import GatewayError, StoreBusy

NO_ROUTE: Final = "no_route"
"""A client that meets it is newer than this gateway."""

STATUS_OF: Final = {
    "invalid_arguments": 400,
    "not_allowed": 403,
    "not_found": 404,
    "unknown_platform": 404,
    "no_home_channel": 404,
    "unresolved_target": 404,
    "already_resolved": 409,
    "expired": 409,
    "changed": 409,
    "stale": 409,
    "ambiguous_target": 409,
    "not_offered": 409,
    "not_answerable": 409,
    "too_large": 413,
    "invalid_answer": 422,
    "rate_limited": 429,
    "rejected": 502,
    "platform_down": 502,
    "stopping": 503,
    "store_unavailable": 503,
    "not_confirmed": 504,
}
"""The status of each code."""


class Problem(Exception):
    """A request that is not done; `details` go beside the sentence."""

    def __init__(
        self, code: str, sentence: str, *, details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.details = dict(details or {})


async def answer_problem(request: Request, error: Exception) -> JSONResponse:
    """Answer a `Problem`."""
    del request
    if not isinstance(error, Problem):
        raise error
    return said(STATUS_OF[error.code], error.code, error.sentence, error.details)


async def answer_busy(request: Request, error: Exception) -> JSONResponse:
    """Answer when the store cannot take or give anything."""
    del request
    sentence = error.public_message if isinstance(error, GatewayError) else str(error)
    return said(STATUS_OF["store_unavailable"], "store_unavailable", sentence)


async def answer_http(request: Request, error: Exception) -> JSONResponse:
    """Answer what the router refuses."""
    if not isinstance(error, HTTPException):
        raise error
    sentence = f"there is no {request.method} {request.url.path}"
    return said(error.status_code, NO_ROUTE, sentence)


async def answer_fault(request: Request, error: Exception) -> JSONResponse:
    """Answer a fault of ours; its detail is in the log alone."""
    del request, error
    return said(500, "internal", "something went wrong on our side; the log has the detail")


def said(
    status: int, code: str, sentence: str, details: Mapping[str, object] | None = None
) -> JSONResponse:
    """Return an error as the API writes it."""
    return JSONResponse({"error": sentence, "code": code, **(details or {})}, status_code=status)


HANDLERS: Final = {
    Problem: answer_problem,
    StoreBusy: answer_busy,
    HTTPException: answer_http,
    Exception: answer_fault,
}
