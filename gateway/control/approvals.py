"""`POST /v1/approvals/{id}`: decides a question as the operator, and says who was first."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.control.body import Body, read_body
from gateway.control.callers import caller, check_no_agent, surface_of
from gateway.control.desk import Desk
from gateway.control.judging import (
    DECISIONS,
    NEEDS_ANSWERS,
    judged_action,
    refused_sentence,
)
from gateway.control.problems import Problem
from gateway.control.shapes import decision_json
from gateway.domain.conversation import Ambiguous
from gateway.domain.ids import RuleId
from gateway.domain.operations.questions import Counted, Refused, Ruling, Settled, Why
from gateway.domain.operations.upkeep import RevokeRule
from gateway.domain.question import Action, Question, QuestionState, Surface

_CODE_OF: Final = {
    Why.UNKNOWN: "not_found",
    Why.LATE: "already_resolved",
    Why.EXPIRED: "expired",
    Why.CHANGED: "changed",
    Why.NOT_OFFERED: "not_offered",
    Why.REPEATED: "already_resolved",
    Why.NOT_ALLOWED: "not_allowed",
    Why.NOT_SHOWN: "not_offered",
}


class ApprovalRoutes:
    """Decisions and standing rules."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def decide(self, request: Request) -> Response:
        """Decide one question; the first decision wins, whoever made it."""
        desk, body = self._desk, await read_body(request)
        check_no_agent(request, desk)
        surface = surface_of(body.text_or("surface", Surface.CLI.value))
        if surface is Surface.BRIDGE and not desk.bridge_decides:
            raise Problem("not_allowed", "mcp_serve.allow_approvals is off")
        question = await find_question(desk, request.path_params["id"])
        action = _action(body, question)
        actor = caller(desk, surface=surface)
        ruling = await desk.decisions.decide(
            question,
            actor=actor,
            surface=surface,
            action=action,
            reason=body.text_or("reason", ""),
        )
        decided = check_ruling(desk, ruling, question, action=action, surface=surface)
        return JSONResponse(
            {**decided, "approval_id": question.id, "given": desk.given.add(question.shown_in)}
        )

    async def revoke(self, request: Request) -> Response:
        """End a standing rule."""
        check_no_agent(request, self._desk)
        text: str = request.path_params["id"]
        if not (text.isascii() and text.isdecimal()):
            raise Problem("not_found", f"there is no rule {text}")
        revoke = RevokeRule(rule=RuleId(int(text)), by=caller(self._desk))
        rule = await self._desk.store.revoke_rule(revoke)
        if rule is None:
            raise Problem("not_found", f"there is no rule {text}")
        return JSONResponse({"revoked": True, "id": str(rule.id)})


async def find_question(desk: Desk, identifier: str) -> Question:
    """Return a question by its id, its short id, or a prefix that names only it.

    Raises:
        Problem: There is none, or there are several.
    """
    found = await desk.readers.questions.find(identifier)
    if found is None:
        raise Problem("not_found", f"there is no question {identifier}")
    if isinstance(found, Ambiguous):
        raise Problem(
            "ambiguous_target",
            f"{identifier} names several questions",
            details={"candidates": list(found.candidates)},
        )
    return desk.decisions.named(found)


def check_ruling(
    desk: Desk, ruling: Ruling, question: Question, *, action: Action, surface: Surface
) -> dict[str, Any]:
    """Return how a decision counts.

    Raises:
        Problem: It does not; who was first is told.
    """
    match ruling:
        case Settled():
            settled = ruling.decision.action.value
            return {"resolved": True, "decision": settled, "state": ruling.decision.state.value}
        case Counted():
            return {
                "resolved": False,
                "decision": action.value,
                "state": QuestionState.PENDING.value,
                "votes_needed": ruling.votes_needed,
            }
        case Refused():
            current = ruling.question or question
            actor = caller(desk, surface=surface)
            named = desk.decisions.named(current)
            sentence = refused_sentence(desk.decisions, ruling, named, actor=actor, action=action)
            details = decision_json(named)
            raise Problem(_CODE_OF[ruling.why], sentence, details=details)


def _action(body: Body, question: Question) -> Action:
    wanted = body.text("decision")
    action = next((item for item in DECISIONS if item.value == wanted), None)
    if action is None:
        names = ", ".join(item.value for item in DECISIONS)
        raise Problem("invalid_arguments", f"decision must be one of {names}")
    if body.values.get("args_sha") not in {None, question.args_sha}:
        raise Problem("changed", "what was shown has changed; nothing was done")
    judged = judged_action(action, question)
    if judged is None:
        raise Problem("not_answerable", NEEDS_ANSWERS)
    return judged
