"""`POST /v1/send`: answers only with the platform's id, or with why there is none."""

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.control.body import read_body
from gateway.control.desk import Desk
from gateway.control.problems import Problem
from gateway.domain.delivery import Origin
from gateway.ports import SendRequest
from gateway.runtime.sending import MAX_WAIT_MS, SendRefused

DEFAULT_WAIT_MS: Final = 30_000

_ORIGINS: Final = {"cli": Origin.SEND, "bridge": Origin.BRIDGE}


class SendRoutes:
    """Messages posted as the bot."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def send(self, request: Request) -> Response:
        """Post a message to a target."""
        body = await read_body(request)
        if self._desk.leaving():
            raise Problem("stopping", "the gateway is stopping; nothing was sent")
        attachments = body.texts("attachments")
        origin = _ORIGINS.get(body.text_or("origin", "cli"))
        if origin is None:
            raise Problem("invalid_arguments", "origin must be cli or bridge")
        sent = await self._desk.sending.send(
            SendRequest(
                target=body.text("target"),
                # A file says enough by itself.
                text=body.text_or("message", "") if attachments else body.text("message"),
                attachments=attachments,
                idempotency_key=body.text_or("idempotency_key", "") or None,
                origin=origin,
                wait_ms=max(0, min(body.number("wait_ms", default=DEFAULT_WAIT_MS), MAX_WAIT_MS)),
            )
        )
        if isinstance(sent, SendRefused):
            details: dict[str, object] = {}
            if sent.delivery is not None:
                details["delivery_id"] = str(sent.delivery)
            if sent.candidates:
                details["candidates"] = list(sent.candidates)
            raise Problem(sent.code, sent.sentence, details=details)
        return JSONResponse(
            {
                "success": True,
                "platform": sent.platform,
                "chat_id": sent.chat,
                "thread_id": sent.thread or None,
                "message_id": sent.message_ids[0],
                "message_ids": list(sent.message_ids),
                "delivery_id": str(sent.delivery),
            }
        )
