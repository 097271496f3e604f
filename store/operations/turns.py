"""Claiming a conversation, journaling its turn, ending it; every write proves its fence."""

from collections.abc import Sequence
from typing import Any, Final

from gateway.domain.canonical import CanonicalJson, canonical
from gateway.domain.errors import Conflict, Fenced, NotFound
from gateway.domain.ids import (
    Account,
    Actor,
    ConversationId,
    Cursor,
    MessageId,
    QuestionId,
    SessionId,
    TurnId,
)
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.turns import (
    Claim,
    Committed,
    CommitTurn,
    Compact,
    Release,
    StepKind,
    StepState,
    StoredStep,
    UsageRecord,
)
from store.codec import RowLike, actor_from_text, clean, ms, place_from_row, storable
from store.operations.inputs import joined_ids, next_inputs, take, taken_inputs
from store.operations.outbox import Owner, add_parts, take_preview_away
from store.sql import inbound as inbound_sql
from store.sql import turns as sql
from store.work import Work

NEVER: Final = 9_999_999_999_999
"""One process holds the home, so a lease ends when the next one boots, never by time."""


def claim_turn(work: Work, worker: str, held: Sequence[Account] = ()) -> Claim | None:
    """Take the conversation that waits longest and is not held, with its open turn or next input."""
    accounts = canonical([f"{platform}@{account}" for platform, account in held])
    while True:
        values = {"me": worker, "until": NEVER, "now": work.now, "held": accounts}
        row = work.one(sql.CLAIM, values)
        if row is None:
            return None
        claim = _resume(work, row) or _begin(work, row)
        if claim is not None:
            return claim
        # Its input was deleted or is damaged.
        _release(work, conversation=row["id"], fence=row["fence"])


def release(work: Work, release: Release) -> None:
    """Give a claim back; what is open or waits is claimed again."""
    _release(work, conversation=release.conversation, fence=release.fence)


def commit_turn(work: Work, commit: CommitTurn) -> Committed:
    """End the turn: reply, deliveries, event and books together; a repeat tells the same again."""
    values: dict[str, object] = {
        "conv": commit.conversation,
        "turn": commit.turn,
        "fence": commit.fence,
        "now": work.now,
    }
    turn = work.one(sql.OPEN_TURN, values)
    if turn is None or not commit.fence == turn["fence"] == turn["conversation_fence"]:
        raise Fenced(commit.turn, commit.fence)
    if turn["state"] not in ("running", "waiting"):
        return _committed_before(work, values)
    for reply in commit.replied:
        add_reply_step(work, turn=commit.turn, n=reply.n, result=reply.result)
    values["messages"] = 1 if commit.reply else 0
    values["parts"] = len(commit.parts)
    values["ready"] = max(work.now, ms(commit.not_before)) if commit.not_before else work.now
    row = work.one(sql.COMMIT, values)
    if row is None:
        raise Fenced(commit.turn, commit.fence)
    values["state"] = commit.end.value
    values["error"] = storable(commit.error) or None
    work.run(sql.END, values)
    work.run(sql.CLOSE_STEPS, values)
    work.run(sql.INPUTS_DONE, values)
    message = cursor = None
    values["session"] = turn["session_id"]
    for hidden in commit.hides:
        work.run(sql.HIDE, {**values, "message": hidden})
    if commit.reply:
        message, cursor = _reply(work, commit.reply, values, seq=row["last_seq"])
    owner = Owner(
        conversation=commit.conversation, chat=row["chat_id"], turn=commit.turn, message=message
    )
    add_parts(
        work,
        owner,
        commit.parts,
        origin="turn",
        group_key=f"turn:{commit.turn}",
        first_ord=row["last_ord"] - len(commit.parts) + 1,
    )
    take_preview_away(work, commit.turn)
    add_usage(work, commit.usage, values, actor=turn["requester"], messages=values["messages"])
    return Committed(message=message, cursor=cursor, more=row["ready_at"] is not None)


def compact(work: Work, compact: Compact) -> None:
    """Let the model's history start at a message, with a summary for what was before it."""
    values: dict[str, object] = {
        "session": compact.session,
        "first": compact.first,
        "now": work.now,
        "turn": None,
        "role": "summary",
        "body": storable(compact.summary),
    }
    session = work.one(sql.SESSION, values)
    if session is None:
        raise NotFound("session", compact.session)
    if session["context_from"] == compact.first:
        return
    values["conv"] = session["conversation_id"]
    values["seq"] = work.value(sql.NEXT_SEQ, values)
    values["message"] = work.next_message()
    work.run(sql.MESSAGE, values)
    work.run(sql.CONTEXT, values)
    add_usage(work, compact.usage, values, actor="system", messages=0)


def add_reply_step(work: Work, *, turn: TurnId, n: int, result: str) -> None:
    """Journal a model's answer; the same again is no change.

    Raises:
        Conflict: The step is taken by something else.
    """
    values: dict[str, object] = {
        "turn": turn,
        "n": n,
        "idem_key": f"{turn}:{n}",
        "result": storable(result),
        "now": work.now,
    }
    if work.run(sql.REPLIED, values):
        return
    row = work.one(sql.STEP, values)
    if row is None or row["kind"] != StepKind.MODEL or row["result"] != values["result"]:
        raise Conflict(f"step {n} of turn {turn} exists")


def add_usage(
    work: Work,
    usage: Sequence[UsageRecord],
    values: dict[str, object],
    *,
    actor: str,
    messages: object,
) -> None:
    """Write the books, and count tokens and messages of the session."""
    for record in usage:
        work.run(
            sql.USAGE,
            {
                **values,
                "actor": actor,
                "purpose": record.purpose.value,
                "server": storable(record.server),
                "model": storable(record.model),
                "tokens_in": record.usage.input_tokens,
                "tokens_out": record.usage.output_tokens,
                "ms": record.ms,
            },
        )
    work.run(
        sql.TOKENS,
        {
            "session": values["session"],
            "added": messages,
            "tokens_in": sum(record.usage.input_tokens for record in usage),
            "tokens_out": sum(record.usage.output_tokens for record in usage),
        },
    )


# --- claiming ---------------------------------------------------------------------


def _resume(work: Work, row: RowLike) -> Claim | None:
    turn = work.one(sql.RESUME, {"conv": row["id"], "fence": row["fence"]})
    if turn is None:
        return None
    work.run(sql.UNKNOWN, {"turn": turn["id"], "now": work.now})
    inputs = taken_inputs(work, TurnId(turn["id"]), row)
    return Claim(
        conversation=ConversationId(row["id"]),
        place=place_from_row(row),
        session=SessionId(turn["session_id"]),
        fence=row["fence"],
        turn=TurnId(turn["id"]),
        requester=_requester(turn["requester"], inputs),
        inputs=tuple(inputs),
        steps=tuple(_step(each) for each in work.all(sql.STEPS, {"turn": turn["id"]})),
        rounds=turn["rounds"],
        attempts=turn["attempts"],
        resumed=True,
        model=clean(turn["model"]),
    )


def _begin(work: Work, row: RowLike) -> Claim | None:
    inputs = next_inputs(work, row)
    if not inputs:
        return None
    first = inputs[0]
    values = {
        "conv": row["id"],
        "session": first.session,
        "actor": storable(str(first.event.sender)),
        "fence": row["fence"],
        "now": work.now,
    }
    begun = work.one(sql.TURN, values)
    if begun is None:
        raise NotFound("session", first.session)
    turn = TurnId(begun["id"])
    take(work, turn, inputs)
    return Claim(
        conversation=ConversationId(row["id"]),
        place=place_from_row(row),
        session=first.session,
        fence=row["fence"],
        turn=turn,
        requester=first.event.sender,
        inputs=tuple(inputs),
        steps=(),
        rounds=0,
        attempts=1,
        resumed=False,
        model=clean(begun["model"]),
    )


def _requester(text: str, inputs: Sequence[StoredInbound]) -> Actor:
    for item in inputs:
        if str(item.event.sender) == text:
            return item.event.sender
    return actor_from_text(text)


def _step(row: RowLike) -> StoredStep:
    question: Any = row["question_id"]
    return StoredStep(
        n=row["n"],
        kind=StepKind(row["kind"]),
        call_id=clean(row["call_id"]),
        server=clean(row["server"]),
        tool=clean(row["tool"]),
        tool_def_sha=clean(row["tool_def_sha"]),
        arguments=None if row["args"] is None else CanonicalJson(clean(row["args"])),
        repeatable=bool(row["repeatable"]),
        state=StepState(row["state"]),
        result=clean(row["result"] or ""),
        joined=joined_ids(row["result"]) if row["kind"] == StepKind.INPUT else (),
        question=None if question is None else QuestionId(clean(question)),
    )


def _release(work: Work, *, conversation: int, fence: int) -> None:
    work.run(sql.RELEASE, {"conv": conversation, "fence": fence, "now": work.now})


# --- ending ---------------------------------------------------------------------------


def _reply(
    work: Work, reply: str, values: dict[str, object], *, seq: int
) -> tuple[MessageId, Cursor]:
    message = MessageId(work.next_message())
    values = {
        **values,
        "message": message,
        "seq": seq,
        "role": "assistant",
        "body": storable(reply),
    }
    work.run(sql.MESSAGE, values)
    work.run(sql.LAST_MESSAGE, values)
    cursor = Cursor(work.insert(inbound_sql.EVENT, values))
    work.wrote_event = True
    return message, cursor


def _committed_before(work: Work, values: dict[str, object]) -> Committed:
    row = work.one(sql.COMMITTED, values)
    more = work.one(sql.WAITING, values) is not None
    if row is None:
        return Committed(message=None, cursor=None, more=more)
    return Committed(message=MessageId(row["message"]), cursor=Cursor(row["cursor"]), more=more)
