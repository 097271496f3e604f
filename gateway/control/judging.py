"""What a decision by id means for the question it names, and how a refusal is told. Pure."""

from typing import Final

from gateway.domain.ids import Actor
from gateway.domain.operations.questions import Refused, Why
from gateway.domain.question import Action, Question, QuestionKind, QuestionState
from gateway.runtime.cards import decided
from gateway.runtime.decisions import Decisions

DECISIONS: Final = (Action.ALLOW_ONCE, Action.ALLOW_SESSION, Action.ALLOW_ALWAYS, Action.DENY)
NEEDS_ANSWERS: Final = "it needs answers; decline it with deny"

_GATED: Final = frozenset({QuestionKind.TOOL_CALL, QuestionKind.SAMPLING})
_REFUSALS: Final = (Action.DENY, Action.DECLINE, Action.CANCEL)
"""How a question can be refused, the first one it offers."""


def judged_action(action: Action, question: Question) -> Action | None:
    """Return the action to take, None when the question cannot be allowed without answers."""
    if action is Action.DENY:
        return next((way for way in _REFUSALS if way in question.actions), Action.DENY)
    if question.kind not in _GATED and question.state is QuestionState.PENDING:
        return None
    return action


def refused_sentence(
    decisions: Decisions, refused: Refused, question: Question, *, actor: Actor, action: Action
) -> str:
    """Return why nothing changed; a program is told who was first even when that was itself."""
    if refused.why is Why.LATE and question.decision is not None:
        return decided(question)
    return decisions.sentence(refused, question, actor=actor, action=action)
