"""The words of a card, open and closed, before a platform lays them out. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from gateway.domain.ids import Actor
from gateway.domain.question import (
    Action,
    ApproverPolicy,
    Approvers,
    Button,
    Decision,
    Question,
    QuestionKind,
    QuestionState,
    Surface,
)
from gateway.domain.text import shorten, show_escapes
from gateway.ports import CardView
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.forms.steps import Choice, Prompt
from gateway.runtime.redact import shown_arguments

MAX_DESCRIPTION: Final = 300
MAX_NAME: Final = 100
MAX_REASON: Final = 300

APPROVAL_LABELS: Final = {
    Action.ALLOW_ONCE: "Allow once",
    Action.ALLOW_SESSION: "Allow for this session",
    Action.ALLOW_ALWAYS: "Always allow",
    Action.DENY: "Deny",
}
STATE_OF: Final = {
    Action.ALLOW_ONCE: QuestionState.ALLOWED,
    Action.ALLOW_SESSION: QuestionState.ALLOWED,
    Action.ALLOW_ALWAYS: QuestionState.ALLOWED,
    Action.DENY: QuestionState.DENIED,
    Action.SUBMIT: QuestionState.ACCEPTED,
    Action.DECLINE: QuestionState.DECLINED,
    Action.CANCEL: QuestionState.CANCELLED,
    Action.TIMEOUT: QuestionState.EXPIRED,
    Action.WITHDRAW: QuestionState.CANCELLED,
}
"""How a question ends by each deciding action."""

_DONE: Final = {
    Action.ALLOW_ONCE: "Allowed once",
    Action.ALLOW_SESSION: "Allowed for this session",
    Action.ALLOW_ALWAYS: "Always allowed",
    Action.DENY: "Denied",
    Action.SUBMIT: "Submitted",
    Action.DECLINE: "Declined",
    Action.CANCEL: "Cancelled",
}
_SUBMITTED: Final = {QuestionKind.CHOICE: "Chosen", QuestionKind.URL: "Agreed"}
_VIA: Final = {
    Surface.CLI: "via the shell",
    Surface.DASHBOARD: "via dashboard",
    Surface.BRIDGE: "via bridge",
    Surface.CHANNEL: "via channel",
}


def approval_prompt(body: str, actions: Sequence[Action]) -> Prompt:
    """Return the card of a tool call: the buttons its actions offer, in order."""
    choices = [
        Choice(action=action, label=APPROVAL_LABELS[action])
        for action in actions
        if action in APPROVAL_LABELS
    ]
    return Prompt(text=body, choices=tuple(choices))


def card_view(
    question: Question,
    prompt: Prompt,
    *,
    buttons: tuple[Button, ...] = (),
    reply_token: str = "",
    now: datetime,
    config: ApprovalsConfig,
) -> CardView:
    """Return an open card: who asks, what exactly, and until when it can be answered."""
    return CardView(
        question=question.id,
        short=question.short,
        title=title_of(question),
        text=prompt.text,
        arguments=_arguments(question, config),
        lines=_lines(question, now),
        buttons=buttons,
        reply_token=reply_token,
        reply_hint=prompt.hint if reply_token else "",
        field=prompt.field if reply_token else "",
    )


def closed_view(
    question: Question, *, text: str, closed: str, now: datetime, config: ApprovalsConfig
) -> CardView:
    """Return the card as it stays: the same words, no buttons, and what ended it."""
    return CardView(
        question=question.id,
        short=question.short,
        title=title_of(question),
        text=text,
        arguments=_arguments(question, config),
        lines=_lines(question, now)[:1],
        closed=closed,
    )


def title_of(question: Question) -> str:
    """Return `server · tool`, by the configured and the original name."""
    names = [one_line(name) for name in (question.server, question.tool) if name]
    return " · ".join(names) if names else "Your choice"


def closed_line(
    question: Question, *, action: Action, by: Actor | None, via: Surface, at: datetime, reason: str
) -> str:
    """Return the sentence that says what ended a question, by whom and when."""
    parts = [ending(question, action=action, by=by, reason=reason), clock_time(at)]
    if via in _VIA:
        parts.append(_VIA[via])
    return " · ".join(parts)


def ending(question: Question, *, action: Action, by: Actor | None, reason: str) -> str:
    """Return what ended a question, without the time."""
    why = one_line(reason, MAX_REASON)
    if action is Action.TIMEOUT:
        return f"Expired, {no_answer(question)}"
    if action is Action.WITHDRAW:
        return "No longer waiting" + (f": {why}" if why else "")
    words = _DONE[action]
    if action is Action.SUBMIT:
        words = _SUBMITTED.get(question.kind, words)
    if by is not None:
        words += f" by {name_of(by)}"
    return f"{words}: {why}" if why else words


def decided(question: Question) -> str:
    """Return who ended a settled question and how, as one sentence for somebody who is late."""
    decision = question.decision
    if decision is None:
        return "It is still open."
    said = closed_line(
        question,
        action=decision.action,
        by=decision.by,
        via=decision.via,
        at=decision.at,
        reason="",
    )
    return f"Already settled: {said}."


def outcome_sentence(question: Question, decision: Decision) -> str:
    """Return why a call did not run, or that it may, for model and chat alike."""
    if decision.state is QuestionState.ALLOWED:
        return _lower(ending(question, action=decision.action, by=decision.by, reason=""))
    if decision.action is Action.TIMEOUT:
        return no_answer(question)
    said = _lower(ending(question, action=decision.action, by=decision.by, reason=decision.reason))
    return f"not run: {said}" if question.kind is QuestionKind.TOOL_CALL else said


def no_answer(question: Question) -> str:
    """Return the words for a question nobody answered in time."""
    seconds = (question.expires_at - question.created_at).total_seconds()
    gone = "not run" if question.kind is QuestionKind.TOOL_CALL else "not answered"
    return f"{gone}: no answer in {seconds:.0f} s"


def deciders(approvers: Approvers, requester: Actor) -> str:
    """Return who may answer, as the middle of a sentence."""
    match approvers.policy:
        case ApproverPolicy.REQUESTER:
            return f"{name_of(requester)} or an admin"
        case ApproverPolicy.ADMINS:
            return "an admin"
        case ApproverPolicy.LIST:
            return "a listed approver or an admin"


def name_of(actor: Actor) -> str:
    """Return how people know somebody; names are their own words, so they are made safe."""
    return one_line(actor.name, MAX_NAME) or one_line(str(actor), MAX_NAME)


def one_line(text: str, limit: int = MAX_NAME) -> str:
    """Return untrusted text as one short, visible line."""
    return shorten(show_escapes(" ".join(text.split())), limit)


def clock_time(at: datetime) -> str:
    """Return hours and minutes where the gateway runs."""
    return at.astimezone().strftime("%H:%M")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _arguments(question: Question, config: ApprovalsConfig) -> str:
    if question.arguments is None:
        return ""
    return shown_arguments(question.arguments, redact=config.redact)


def _lines(question: Question, now: datetime) -> tuple[str, ...]:
    seconds = max(0.0, (question.expires_at - now).total_seconds())
    left = f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
    return (
        f"Asked by {name_of(question.requester)}",
        f"Expires at {clock_time(question.expires_at)} (in {left})",
        f"ID {question.short}",
    )
