"""The control API as a Starlette application: every route of it, in one table."""

from typing import Final

from starlette.applications import Starlette
from starlette.routing import Route

from gateway.control.answers import AnswerRoutes
from gateway.control.approvals import ApprovalRoutes
from gateway.control.basics import BasicRoutes
from gateway.control.calls import CallRoutes
from gateway.control.desk import Desk
from gateway.control.events import EventRoutes
from gateway.control.inbound import InboundRoutes
from gateway.control.pairing import PairingRoutes
from gateway.control.permissions import PermissionRoutes
from gateway.control.problems import HANDLERS
from gateway.control.sends import SendRoutes

GET: Final = ["GET"]
POST: Final = ["POST"]


def control_app(desk: Desk) -> Starlette:
    """Return the application over one running gateway."""
    basics, approvals, inbound = BasicRoutes(desk), ApprovalRoutes(desk), InboundRoutes(desk)
    return Starlette(
        routes=[
            Route("/v1/status", basics.status, methods=GET),
            Route("/v1/events", EventRoutes(desk).follow, methods=GET),
            Route("/v1/send", SendRoutes(desk).send, methods=POST),
            Route("/v1/inbound", inbound.give, methods=POST),
            Route("/v1/inbound", inbound.follow, methods=GET),
            Route("/v1/answers", AnswerRoutes(desk).answer, methods=POST),
            Route("/v1/approvals/{id}", approvals.decide, methods=POST),
            Route("/v1/permissions", PermissionRoutes(desk).ask, methods=POST),
            Route("/v1/rules/{id}/revoke", approvals.revoke, methods=POST),
            Route("/v1/pairing", PairingRoutes(desk).change, methods=POST),
            Route("/v1/calls", CallRoutes(desk).call, methods=POST),
            Route("/v1/reload", basics.reload, methods=POST),
            Route("/v1/stop", basics.stop, methods=POST),
        ],
        exception_handlers=dict(HANDLERS),
    )
