"""The refusals of the Bot API in its own words."""

from typing import Any


class ApiError(Exception):
    """A refused call: HTTP status, description and what a client may act on."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "ok": False,
            "error_code": self.status,
            "description": self.description,
        }
        if self.parameters:
            body["parameters"] = self.parameters
        return body


def bad_request(problem: str) -> ApiError:
    return ApiError(400, f"Bad Request: {problem}")


def forbidden(problem: str) -> ApiError:
    return ApiError(403, f"Forbidden: {problem}")


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized")


def not_found() -> ApiError:
    return ApiError(404, "Not Found")


def flood(seconds: int) -> ApiError:
    return ApiError(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)


def migrated(chat_id: int) -> ApiError:
    return ApiError(
        400,
        "Bad Request: group chat was upgraded to a supergroup chat",
        migrate_to_chat_id=chat_id,
    )


def other_poller() -> ApiError:
    return ApiError(
        409,
        "Conflict: terminated by other getUpdates request; "
        "make sure that only one bot instance is running",
    )


def terminated_by_webhook() -> ApiError:
    return ApiError(409, "Conflict: terminated by setWebhook request")


def webhook_active() -> ApiError:
    return ApiError(
        409,
        "Conflict: can't use getUpdates method while webhook is active; "
        "use deleteWebhook to delete the webhook first",
    )


def not_modified() -> ApiError:
    return bad_request(
        "message is not modified: specified new message content and reply markup are exactly "
        "the same as a current content and reply markup of the message"
    )


def too_old() -> ApiError:
    return bad_request("query is too old and response timeout expired or query ID is invalid")
