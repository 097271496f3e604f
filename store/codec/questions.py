"""Questions, their decisions and their buttons, in columns."""

from collections.abc import Sequence
from typing import cast

from gateway.domain.canonical import CanonicalJson
from gateway.domain.form import Form
from gateway.domain.ids import QuestionId, SessionId, TurnId
from gateway.domain.question import (
    Action,
    ApproverPolicy,
    Approvers,
    Attempt,
    Button,
    Decision,
    Question,
    QuestionKind,
    QuestionState,
    Surface,
)
from store.codec.columns import (
    RowLike,
    clean,
    from_ms,
    list_from_json,
    object_from_json,
    to_json,
)
from store.codec.forms import form_from_json
from store.codec.places import actor_from_text, actor_or_none, place_from_row


def approvers_to_json(approvers: Approvers) -> str:
    """Return the text of the `approvers` column."""
    return to_json({"policy": approvers.policy.value, "ids": approvers.ids})


def approvers_from_json(text: str) -> Approvers:
    """Read the `approvers` column; a damaged one leaves the decision to admins."""
    raw = object_from_json(text)
    try:
        policy = ApproverPolicy(str(raw["policy"]))
        ids = tuple(str(item) for item in cast("list[object]", raw["ids"]))
    except (KeyError, TypeError, ValueError):
        return Approvers(policy=ApproverPolicy.ADMINS)
    return Approvers(policy=policy, ids=ids)


def actions_to_json(actions: Sequence[Action]) -> str:
    """Return the text of the `actions` column."""
    return to_json([action.value for action in actions])


def actions_from_json(text: str) -> tuple[Action, ...]:
    """Read the `actions` column; a damaged one offers nothing."""
    known = {action.value: action for action in Action}
    return tuple(
        known[item] for item in list_from_json(text) if isinstance(item, str) and item in known
    )


def question_from_row(row: RowLike) -> Question:
    """Read a row of `store.sql.columns.QUESTION`; a damaged part of it closes what it guards."""
    return Question(
        id=QuestionId(clean(row["id"])),
        short=clean(row["short"]),
        kind=QuestionKind(row["kind"]),
        place=place_from_row(row, prefix="c_"),
        shown_in=place_from_row(row, prefix="s_"),
        requester=actor_from_text(row["requester"]),
        actions=actions_from_json(row["actions"]),
        body=clean(row["body"]),
        args_sha=clean(row["args_sha"]),
        created_at=from_ms(row["created_at"]),
        expires_at=from_ms(row["expires_at"]),
        approvers=approvers_from_json(row["approvers"]),
        quorum=row["quorum"],
        session=SessionId(row["session_id"]),
        turn=None if row["turn_id"] is None else TurnId(row["turn_id"]),
        step=row["step_n"],
        server=clean(row["server"]),
        server_sha=clean(row["server_sha"]),
        tool=clean(row["tool"]),
        tool_def_sha=clean(row["tool_def_sha"]),
        arguments=None if row["args"] is None else CanonicalJson(clean(row["args"])),
        form=_form_or_none(row["form"]),
        state=QuestionState(row["state"]),
        decision=decision_from_row(row),
        consumed=row["consumed_at"] is not None,
    )


def decision_from_row(row: RowLike) -> Decision | None:
    """Read how a question ended from its columns; None while it is pending."""
    state = QuestionState(row["state"])
    if state is QuestionState.PENDING:
        return None
    return Decision(
        question=QuestionId(clean(row["id"])),
        state=state,
        action=action_or_withdraw(row["decision"]),
        by=actor_or_none(row["decided_by"]),
        via=Surface(row["decided_via"] or Surface.SYSTEM),
        at=from_ms(row["decided_at"] or 0),
        reason=clean(row["reason"] or ""),
        content=None if row["content"] is None else object_from_json(row["content"]),
    )


def action_or_withdraw(text: str | None) -> Action:
    """Read the `decision` column of a settled question; a damaged one allows nothing."""
    try:
        return Action(text or "")
    except ValueError:
        return Action.WITHDRAW


def attempt_from_row(row: RowLike) -> Attempt:
    """Read a `vote` row."""
    return Attempt(
        by=actor_from_text(row["actor"]),
        via=Surface(row["surface"]),
        action=Action(row["action"]),
        outcome=clean(row["outcome"]),
        at=from_ms(row["at"]),
        reason=clean(row["reason"]),
    )


def button_from_row(row: RowLike) -> Button:
    """Read a `button` row; labels are the renderer's and not stored."""
    return Button(
        token=clean(row["token"]),
        action=action_or_withdraw(row["action"]),
        label="",
        argument=clean(row["argument"]),
    )


def _form_or_none(text: str | None) -> Form | None:
    if text is None:
        return None
    try:
        return form_from_json(text)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
