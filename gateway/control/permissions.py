"""`POST /v1/permissions`: asks a person what another agent wants to know; decides nothing itself."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.control.body import read_body
from gateway.control.callers import caller, check_no_agent
from gateway.control.desk import Desk
from gateway.control.problems import Problem
from gateway.control.shapes import ms
from gateway.domain.question import Surface
from gateway.ports import PermissionRequest
from gateway.runtime.permissions import NotAsked


class PermissionRoutes:
    """Questions of agents that are no part of this gateway."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def ask(self, request: Request) -> Response:
        """Show a card with two buttons; how it ends comes as an event."""
        desk, body = self._desk, await read_body(request)
        check_no_agent(request, desk)
        if not desk.bridge_decides:
            raise Problem("not_allowed", "mcp_serve.allow_approvals is off")
        asked = await desk.permissions.ask(
            PermissionRequest(
                id=body.text("id"),
                agent=body.text("agent"),
                tool=body.text("tool"),
                description=body.text_or("description", ""),
                preview=body.text_or("preview", ""),
                session_key=body.text_or("session_key", "") or None,
                requester=body.text_or("requester", "") or None,
            ),
            operator=caller(desk, surface=Surface.CHANNEL),
        )
        if isinstance(asked, NotAsked):
            raise Problem(asked.code, asked.sentence)
        return JSONResponse({"approval_id": asked.id, "expires_at": ms(asked.expires_at)})
