"""The refusals of Slack's Web API: HTTP 200 with `ok: false`, except when there are too many calls."""

from typing import Any


class ApiError(Exception):
    """A refused call: Slack's word for it, and what else the answer says."""

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.error = error
        self.more = more

    def body(self) -> dict[str, Any]:
        return {"ok": False, "error": self.error, **self.more}


class RateLimited(ApiError):
    """HTTP 429 with `Retry-After`."""

    def __init__(self, seconds: int) -> None:
        super().__init__("ratelimited")
        self.seconds = seconds


def missing_scope(needed: str, provided: frozenset[str]) -> ApiError:
    return ApiError("missing_scope", needed=needed, provided=",".join(sorted(provided)))
