"""`POST /v1/pairing`: lets a stranger in by their code, or somebody in no more, as the operator."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.control.body import read_body
from gateway.control.callers import caller, check_no_agent
from gateway.control.desk import Desk
from gateway.control.problems import Problem
from gateway.control.shapes import pairing_json
from gateway.runtime.pairing import NoPairing, Which


class PairingRoutes:
    """Who is in by a code."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def change(self, request: Request) -> Response:
        """Approve a code, or revoke a person."""
        desk, body = self._desk, await read_body(request)
        check_no_agent(request, desk)
        action, platform, by = body.text("action"), body.text_or("platform", ""), caller(desk)
        match action:
            case "approve":
                found = await desk.pairing.approve(body.text("code"), platform=platform, by=by)
                nobody = "nobody waits with that code"
            case "revoke":
                user = body.text("user")
                found = await desk.pairing.revoke(user, platform=platform, by=by)
                nobody = f"nobody called {user} is paired"
            case _:
                raise Problem("invalid_arguments", "action must be approve or revoke")
        if isinstance(found, NoPairing):
            raise Problem("not_found", nobody)
        if isinstance(found, Which):
            names = ", ".join(found.accounts)
            raise Problem(
                "ambiguous_target",
                f"that is on several platforms: say which of {names}",
                details={"candidates": list(found.accounts)},
            )
        return JSONResponse({"pairing": pairing_json(found)})
