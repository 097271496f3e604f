"""`POST /v1/answers`: one step of a form, or all of it at once."""

from typing import Any, Final, assert_never

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway.control.approvals import check_ruling, find_question
from gateway.control.body import Body, read_body
from gateway.control.callers import caller, check_no_agent
from gateway.control.desk import Desk
from gateway.control.problems import Problem
from gateway.control.shapes import form_json
from gateway.domain.form import FormState
from gateway.domain.operations.questions import Counted, Refused, Settled, Stale
from gateway.domain.question import Action, Question, QuestionState, Surface
from gateway.runtime.form_answers import FieldAnswer, GoTo, Leave, Step, Submit
from gateway.runtime.forms.submitted import Wrong

ACTIONS: Final = ("submit", "decline", "cancel", "edit")


class AnswerRoutes:
    """Answers to forms, as the operator."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def answer(self, request: Request) -> Response:
        """Take a step; an invalid answer says why and changes nothing."""
        desk, body = self._desk, await read_body(request)
        check_no_agent(request, desk)
        question = await find_question(desk, body.text("id"))
        if question.form is None:
            raise Problem("not_answerable", "it has no form; allow or deny it")
        step = _step(body)
        outcome = await desk.answers.take(question, step, actor=caller(desk), surface=Surface.CLI)
        match outcome:
            case FormState():
                return self._answered(question, QuestionState.PENDING, outcome)
            case Stale():
                raise _stale(question, outcome.state)
            case Wrong():
                sentence = "; ".join(f"{name}: {why}" for name, why in outcome.errors.items())
                raise Problem(
                    "invalid_answer",
                    sentence,
                    details={"id": question.id, "errors": dict(outcome.errors)},
                )
            case Settled() | Counted() | Refused():
                action = step.action if isinstance(step, Leave) else Action.SUBMIT
                decided = check_ruling(desk, outcome, question, action=action, surface=Surface.CLI)
                state = await desk.answers.state_of(question)
                return self._answered(question, QuestionState(decided["state"]), state)
            case _:
                assert_never(outcome)

    def _answered(self, question: Question, state: QuestionState, form: FormState) -> Response:
        return JSONResponse(
            {
                "id": question.id,
                "state": state.value,
                "rev": form.rev,
                "field": form.field,
                "errors": {},
                "given": self._desk.given.add(question.shown_in),
            }
        )


def _step(body: Body) -> Step:
    action = body.text_or("action", "")
    if action and action not in ACTIONS:
        raise Problem("invalid_arguments", f"action must be one of {', '.join(ACTIONS)}")
    if action in {"decline", "cancel"}:
        return Leave(action=Action(action))
    answers = body.object_or_none("answers")
    if answers is not None:
        if action != "submit":
            raise Problem("invalid_arguments", "answers go with the action submit")
        return Submit(answers=answers)
    rev = body.number("rev")
    if action == "submit":
        return Submit(rev=rev)
    field = body.text_or("field", "")
    if action == "edit":
        return GoTo(rev=rev, field=field)
    if "value" not in body.values and not body.flag("skip"):
        raise Problem("invalid_arguments", "a value, skip or an action is needed")
    return FieldAnswer(rev=rev, field=field, value=body.values.get("value"), skip=body.flag("skip"))


def _stale(question: Question, state: FormState) -> Problem:
    details: dict[str, Any] = {"id": question.id, "rev": state.rev, "field": state.field}
    if question.form is not None:
        details["form"] = form_json(question.form, state)
    return Problem("stale", "the form has moved on since", details=details)
