"""How a question ends: one conditional update wins; every attempt leaves a vote."""

from collections.abc import Sequence
from typing import Final

from gateway.domain.delivery import Part
from gateway.domain.errors import NotFound
from gateway.domain.ids import ConversationId, QuestionId
from gateway.domain.operations.questions import (
    Counted,
    Decide,
    ExpireDue,
    RefuseAttempt,
    Refused,
    Ruling,
    Settled,
    Why,
    Withdraw,
)
from gateway.domain.question import (
    Action,
    Decision,
    Question,
    QuestionKind,
    QuestionState,
    Surface,
)
from store.codec import ms, question_from_row, storable, to_json
from store.operations.buttons import press
from store.operations.inbound import finish
from store.operations.outbox import add_edit
from store.sql import questions as sql
from store.sql.columns import QUESTION
from store.work import Work

_FIND: Final = QUESTION + "\nWHERE q.id = :question"
_ROWS: Final = "SELECT conversation_id, card_delivery_id FROM question WHERE id = :question"
_UNEVENTED: Final = frozenset({QuestionKind.ARGUMENTS, QuestionKind.CHOICE})
_SCOPES: Final = (Action.ALLOW_ONCE, Action.ALLOW_SESSION, Action.ALLOW_ALWAYS)
"""From the narrowest to the widest."""

_CHATS: Final = frozenset({Surface.BUTTON, Surface.COMMAND})
"""Where somebody decides by what the chat shows; other surfaces show the arguments themselves."""
_OUTCOMES: Final = {Why.NOT_SHOWN: Why.NOT_OFFERED.value}
"""What the books say, where a refusal has no word of its own there."""

NOT_SHOWN: Final = "the arguments could not be shown"
NOT_ASKED: Final = "the card could not be delivered"


def find_question(work: Work, question: QuestionId) -> Question | None:
    """Return a question as its row is now."""
    row = work.one(_FIND, {"question": question})
    return None if row is None else question_from_row(row)


def tell(
    work: Work, what: str, conversation: ConversationId, question: QuestionId, kind: QuestionKind
) -> None:
    """Write the event of a question; guided mode's questions have none."""
    if kind in _UNEVENTED:
        return
    work.run(sql.EVENT, {"kind": what, "conv": conversation, "question": question, "now": work.now})
    work.wrote_event = True


def decide(work: Work, decide: Decide) -> Ruling:
    """Settle a question if it is still open; say why when it is not."""
    finish(work, decide.inbound)
    question = find_question(work, decide.question)
    if question is None:
        return Refused(why=Why.UNKNOWN)
    why = _objection(work, decide, question)
    if why is None and not _vote(work, decide, outcome="counted"):
        why = Why.REPEATED
    if why is not None:
        _vote(work, decide, outcome=_OUTCOMES.get(why, why.value))
        return Refused(why=why, question=question)
    effective = _effective(work, decide)
    if not _settle(work, decide, effective):
        return Counted(votes_needed=question.quorum - len(_allowed(work, decide.question)))
    if decide.token is not None:
        press(work, decide.question, decide.token, actor=str(decide.actor))
    _grant(work, decide, effective)
    return Settled(decision=_close(work, question, decide.edit))


def refuse(work: Work, attempt: RefuseAttempt) -> None:
    """Note an attempt that was not allowed; a question nobody knows has no books."""
    finish(work, attempt.inbound)
    if attempt.why is Why.UNKNOWN or work.one(sql.EXISTS, {"question": attempt.question}) is None:
        return
    work.run(
        sql.VOTE,
        {
            "question": attempt.question,
            "actor": storable(str(attempt.actor)),
            "surface": attempt.surface.value,
            "action": attempt.action.value,
            "outcome": attempt.why.value,
            "reason": "",
            "now": work.now,
        },
    )


def withdraw(work: Work, withdraw: Withdraw) -> Sequence[Settled]:
    """Cancel what is still pending; only what this changed is returned."""
    ended = [
        _end(
            work,
            question,
            edit,
            state=QuestionState.CANCELLED,
            action=Action.WITHDRAW,
            via=Surface.SYSTEM,
            reason=withdraw.reason,
        )
        for question, edit in withdraw.questions.items()
    ]
    return tuple(each for each in ended if each is not None)


def expire_due(work: Work, expire: ExpireDue) -> Sequence[Settled]:
    """Expire what is pending and due; only what this changed is returned."""
    ended = [
        _end(
            work,
            question,
            edit,
            state=QuestionState.EXPIRED,
            action=Action.TIMEOUT,
            via=Surface.TIMEOUT,
            due=True,
        )
        for question, edit in expire.questions.items()
    ]
    return tuple(each for each in ended if each is not None)


def cancel_unshown(work: Work, question: QuestionId, *, reason: str) -> None:
    """Cancel a question whose card or arguments could not be delivered: nothing may run unseen."""
    _end(
        work,
        question,
        None,
        state=QuestionState.CANCELLED,
        action=Action.WITHDRAW,
        via=Surface.SYSTEM,
        reason=reason,
    )


def _objection(work: Work, decide: Decide, question: Question) -> Why | None:
    if decide.action not in question.actions:
        return Why.NOT_OFFERED
    if question.state is QuestionState.EXPIRED:
        return Why.EXPIRED
    if question.state is not QuestionState.PENDING:
        return Why.LATE
    if ms(question.expires_at) <= work.now:
        return Why.EXPIRED
    if question.args_sha != decide.args_sha:
        return Why.CHANGED
    if decide.action in _SCOPES and decide.surface in _CHATS and _is_unshown(work, question):
        return Why.NOT_SHOWN
    return None


def _is_unshown(work: Work, question: Question) -> bool:
    """Whether arguments too long for the card have not reached the chat yet."""
    return work.one(sql.UNSHOWN, {"group_key": f"question:{question.id}"}) is not None


def _vote(work: Work, decide: Decide, *, outcome: str) -> bool:
    values = {
        "question": decide.question,
        "actor": storable(str(decide.actor)),
        "surface": decide.surface.value,
        "action": decide.action.value,
        "outcome": outcome,
        "reason": storable(decide.reason),
        "now": work.now,
    }
    return work.one(sql.VOTE, values) is not None


def _allowed(work: Work, question: QuestionId) -> list[Action]:
    return [Action(row["action"]) for row in work.all(sql.ALLOWED_BY, {"question": question})]


def _effective(work: Work, decide: Decide) -> Action:
    """Return what the votes allow together: the narrowest scope anyone gave."""
    if decide.action not in _SCOPES:
        return decide.action
    return min(_allowed(work, decide.question), key=_SCOPES.index)


def _settle(work: Work, decide: Decide, effective: Action) -> bool:
    values = {
        "question": decide.question,
        "state": decide.to.value,
        "action": effective.value,
        "actor": storable(str(decide.actor)),
        "surface": decide.surface.value,
        "reason": storable(decide.reason) or None,
        "content": None if decide.content is None else to_json(decide.content),
        "args_sha": decide.args_sha,
        "needs_quorum": decide.action in _SCOPES,
        "now": work.now,
    }
    return work.one(sql.SETTLE, values) is not None


def _grant(work: Work, decide: Decide, effective: Action) -> None:
    scope = {Action.ALLOW_SESSION: "session", Action.ALLOW_ALWAYS: "always"}.get(effective)
    if scope is None:
        return
    work.run(
        sql.RULE,
        {
            "scope": scope,
            "question": decide.question,
            "actor": storable(str(decide.actor)),
            "now": work.now,
        },
    )


def _end(
    work: Work,
    question_id: QuestionId,
    edit: Part | None,
    *,
    state: QuestionState,
    action: Action,
    via: Surface,
    reason: str = "",
    due: bool = False,
) -> Settled | None:
    values = {
        "question": question_id,
        "state": state.value,
        "action": action.value,
        "surface": via.value,
        "reason": storable(reason) or None,
        "due": due,
        "now": work.now,
    }
    if work.one(sql.CLOSE, values) is None:
        return None
    question = find_question(work, question_id)
    if question is None:
        raise NotFound("question", question_id)
    return Settled(decision=_close(work, question, edit))


def _close(work: Work, question: Question, edit: Part | None) -> Decision:
    """Show and tell that a question has ended."""
    rows = work.one(_ROWS, {"question": question.id})
    settled = find_question(work, question.id)
    if rows is None or settled is None or settled.decision is None:
        raise NotFound("settled question", question.id)
    if edit is not None:
        add_edit(work, rows["card_delivery_id"], edit, origin="question", question=question.id)
    conversation = ConversationId(rows["conversation_id"])
    tell(work, "approval_resolved", conversation, question.id, question.kind)
    return settled.decision
