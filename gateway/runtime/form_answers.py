"""Answers to forms from programs and pages: by question and field instead of by button.

The same rows, the same steps and the same cards as in the chat; a chat that looks on sees each step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gateway.domain.form import Form, FormState
from gateway.domain.ids import Actor
from gateway.domain.operations.questions import Ruling, Stale, Why
from gateway.domain.question import Action, Question, QuestionState, Surface
from gateway.ports import Clock, Questions
from gateway.runtime.decisions import Decisions
from gateway.runtime.form_steps import FormSteps
from gateway.runtime.forms.moves import NO_STATE, Move
from gateway.runtime.forms.steps import REVIEW, content_of, next_field
from gateway.runtime.forms.submitted import Complete, Wrong, answer_move, check_all, edit_move


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldAnswer:
    """An answer to the asked field, or its omission; `rev` is what the caller saw."""

    rev: int
    field: str
    value: object = None
    skip: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GoTo:
    """Ask another field, "" for the review; nothing is answered by it."""

    rev: int
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Send what was answered so far, or all `answers` at once."""

    rev: int | None = None
    answers: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Decline it or cancel it."""

    action: Action


Step: TypeAlias = FieldAnswer | GoTo | Submit | Leave
Outcome: TypeAlias = FormState | Stale | Wrong | Ruling


class FormAnswers:
    """Takes one step of one form at a time."""

    def __init__(
        self, questions: Questions, decisions: Decisions, steps: FormSteps, clock: Clock
    ) -> None:
        self._questions = questions
        self._decisions = decisions
        self._steps = steps
        self._clock = clock

    async def take(
        self, question: Question, step: Step, *, actor: Actor, surface: Surface
    ) -> Outcome:
        """Do a step as `actor`, if they may and the form is still open.

        Raises:
            StoreBusy: Nothing was done.
        """
        action = step.action if isinstance(step, Leave) else Action.SUBMIT
        if not self._decisions.may(question, actor=actor, action=action):
            return await self._decisions.refuse(
                question, actor=actor, surface=surface, action=action
            )
        if isinstance(step, Leave):
            return await self._decide(question, action, actor, surface)
        if question.state is not QuestionState.PENDING:
            late = Why.EXPIRED if question.state is QuestionState.EXPIRED else Why.LATE
        elif question.expires_at <= self._clock.now():
            late = Why.EXPIRED
        else:
            form = question.form or Form(message="")
            return await self._step(question, form, step, actor, surface)
        return await self._decisions.refuse(
            question, actor=actor, surface=surface, action=action, why=late
        )

    async def state_of(self, question: Question) -> FormState:
        """Return how far a form has come."""
        return await self._questions.form_state(question.id) or NO_STATE

    async def _step(
        self,
        question: Question,
        form: Form,
        step: FieldAnswer | GoTo | Submit,
        actor: Actor,
        surface: Surface,
    ) -> Outcome:
        state = await self.state_of(question)
        if step.rev is not None and step.rev != state.rev:
            return Stale(state=state)
        match step:
            case FieldAnswer():
                move = answer_move(form, state, field=step.field, value=step.value, skip=step.skip)
            case GoTo():
                move = edit_move(form, state, to=step.field)
            case Submit():
                checked = _submitted(form, state, step)
                if isinstance(checked, Wrong):
                    return checked
                return await self._decide(
                    question, Action.SUBMIT, actor, surface, content=checked.content
                )
        if isinstance(move, Move):
            return await self._steps.take(question, state, move, actor=actor)
        return move

    async def _decide(
        self,
        question: Question,
        action: Action,
        actor: Actor,
        surface: Surface,
        *,
        content: Mapping[str, object] | None = None,
    ) -> Ruling:
        return await self._decisions.decide(
            question, actor=actor, surface=surface, action=action, content=content
        )


def _submitted(form: Form, state: FormState, step: Submit) -> Complete | Wrong:
    if step.answers is not None:
        return check_all(form, step.answers)
    open_field = next_field(form, state)
    if open_field != REVIEW:
        return Wrong(errors={open_field: "An answer is needed."})
    return Complete(content=content_of(form, state))
