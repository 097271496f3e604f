"""Why a tool did not do what it was asked: a code for programs, and one sentence."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.errors import GatewayError, GatewayNotRunning, GatewayRefused, StoreError

NOT_RUNNING = "gateway is not running; start it with `hermes gateway run`, then try again"


class Problem(Exception):
    """A call that is answered with a failure; `details` go beside the sentence."""

    def __init__(
        self, code: str, sentence: str, *, details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.details = dict(details or {})

    def as_json(self) -> dict[str, Any]:
        """Return the object that the caller gets."""
        return {"error": self.sentence, "code": self.code, **self.details}


def problem_of(error: GatewayError) -> Problem:
    """Return what an error of ours says to the caller of a tool."""
    if isinstance(error, GatewayNotRunning):
        return Problem("gateway_not_running", NOT_RUNNING)
    if isinstance(error, GatewayRefused):
        return Problem(error.code, error.public_message, details=error.details)
    if isinstance(error, StoreError):
        return Problem("store_unavailable", error.public_message)
    return Problem("internal", error.public_message)
