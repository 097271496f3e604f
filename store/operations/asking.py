"""Putting a question to a person, and taking a form's answers one field at a time."""

from collections.abc import Sequence

from gateway.domain.delivery import DeliveryKind, Part
from gateway.domain.errors import Conflict, NotFound
from gateway.domain.form import FormState
from gateway.domain.ids import ConversationId, QuestionId
from gateway.domain.operations.questions import AnswerField, Ask, Stale
from gateway.domain.question import Question, QuestionState
from store.codec import (
    RowLike,
    actions_to_json,
    approvers_to_json,
    form_state_from_row,
    form_to_json,
    ms,
    storable,
    to_json,
)
from store.operations.buttons import add_buttons, press
from store.operations.inbound import finish
from store.operations.outbox import Owner, add_edit, add_parts, next_ords
from store.operations.places import current_session, rows_of
from store.operations.settling import find_question, tell
from store.sql import questions as sql
from store.work import Work


def ask(work: Work, ask: Ask) -> Question:
    """Store a question with its buttons, its card and its event; a repeat gives the stored one.

    Raises:
        Conflict: Its id, or its short id while pending, is another question's.
    """
    question = ask.question
    place = rows_of(work, question.place)
    shown_in = rows_of(work, question.shown_in)
    session = question.session or current_session(work, place.conversation)
    values = _columns(question)
    values.update(conv=place.conversation, shown_in=shown_in.conversation, session=session)
    if not work.run(sql.QUESTION, values):
        return _asked_before(work, question)
    work.run(sql.STEP, values)
    add_buttons(work, question.id, ask.buttons)
    if ask.field is not None:
        values.update(field=storable(ask.field), now=work.now)
        work.run(sql.PROGRESS, values)
    _show(
        work,
        question.id,
        shown_in.conversation,
        [part for part in (ask.file, ask.card) if part is not None],
        group_key=f"question:{question.id}",
    )
    tell(work, "approval_requested", place.conversation, question.id, question.kind)
    stored = find_question(work, question.id)
    if stored is None:
        raise NotFound("question", question.id)
    return stored


def answer_field(work: Work, answer: AnswerField) -> FormState | Stale:
    """Take one field's answer and put the next; an older card changes nothing.

    Raises:
        NotFound: The question has no form that is stepped through.
    """
    finish(work, answer.inbound)
    row = work.one(sql.FORM, {"question": answer.question})
    if row is None:
        raise NotFound("form of question", answer.question)
    state = form_state_from_row(row)
    open_ = row["state"] == QuestionState.PENDING and row["expires_at"] > work.now
    if not open_ or state.rev != answer.rev:
        return Stale(state=state)
    answers, skipped = _answered(state, answer)
    changed = work.one(
        sql.ANSWER,
        {
            "question": answer.question,
            "rev": answer.rev,
            "answers": to_json(answers),
            "skipped": to_json(sorted(skipped)),
            "field": storable(answer.next),
            "now": work.now,
        },
    )
    if changed is None:
        return Stale(state=state)
    if answer.token is not None:
        press(work, answer.question, answer.token, actor=str(answer.actor or "system"))
    add_buttons(work, answer.question, answer.buttons)
    _show_next(work, answer, row)
    return form_state_from_row(changed)


def _columns(question: Question) -> dict[str, object]:
    return {
        "question": question.id,
        "short": question.short,
        "kind": question.kind.value,
        "turn": question.turn,
        "n": question.step,
        "actor": storable(str(question.requester)),
        "approvers": approvers_to_json(question.approvers),
        "quorum": question.quorum,
        "actions": actions_to_json(question.actions),
        "server": storable(question.server),
        "server_sha": question.server_sha,
        "tool": storable(question.tool),
        "def_sha": question.tool_def_sha,
        "args": None if question.arguments is None else storable(question.arguments),
        "args_sha": question.args_sha,
        "form": None if question.form is None else form_to_json(question.form),
        "body": storable(question.body),
        "created_at": ms(question.created_at),
        "expires_at": ms(question.expires_at),
    }


def _asked_before(work: Work, question: Question) -> Question:
    stored = find_question(work, question.id)
    if stored is None:
        raise Conflict(f"short id {question.short} is taken by a pending question")
    if (stored.turn, stored.step, stored.kind, stored.args_sha, stored.short) != (
        question.turn,
        question.step,
        question.kind,
        question.args_sha,
        question.short,
    ):
        raise Conflict(f"question {question.id} exists")
    return stored


def _show(
    work: Work,
    question: QuestionId,
    conversation: ConversationId,
    parts: Sequence[Part],
    *,
    group_key: str,
) -> None:
    """Send a card, a file of it first; it is the one that later edits change."""
    first, chat = next_ords(work, conversation, parts=len(parts))
    ids = add_parts(
        work,
        Owner(conversation=conversation, chat=chat, question=question),
        parts,
        origin="question",
        group_key=group_key,
        first_ord=first,
    )
    work.run(sql.CARD, {"question": question, "delivery": ids[-1]})


def _answered(state: FormState, answer: AnswerField) -> tuple[dict[str, object], set[str]]:
    answers, skipped = dict(state.answers), set(state.skipped)
    taken, left_out = dict(answer.others), set(answer.left_out)
    if answer.skip:
        left_out.add(answer.field)
    elif not answer.keep:
        taken[answer.field] = answer.value
    for key in taken.keys() | left_out:
        answers.pop(key, None)
        skipped.discard(key)
    return answers | taken, skipped | left_out


def _show_next(work: Work, answer: AnswerField, row: RowLike) -> None:
    if answer.card.kind is DeliveryKind.EDIT:
        add_edit(
            work,
            row["card_delivery_id"],
            answer.card,
            origin="question",
            question=answer.question,
        )
        return
    _show(
        work,
        answer.question,
        ConversationId(row["shown_in"]),
        [answer.card],
        group_key=f"question:{answer.question}:{answer.rev + 1}",
    )
