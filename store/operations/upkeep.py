"""Recovery at boot, retention, and the small writes."""

from datetime import datetime

from gateway.domain.ids import ConversationId, DeliveryId, QuestionId, RuleId, SessionId
from gateway.domain.operations.upkeep import (
    AddAudit,
    DueTimer,
    PinTool,
    Prune,
    Pruned,
    PutServer,
    PutTimer,
    Recovered,
    RevokeRule,
    SetHome,
    SetModel,
    SetTitle,
    StandingRule,
)
from store.codec import (
    actor_from_text,
    clean,
    from_ms,
    ms,
    ms_or_none,
    object_from_json,
    storable,
    to_json,
)
from store.operations.places import see
from store.sql import upkeep as sql
from store.work import Work


def recover(work: Work, worker: str) -> Recovered:
    """Free what an earlier process held; nothing is deleted, and nothing is guessed."""
    del worker  # Every lease of this file is an earlier process's: one process holds the home.
    work.run(sql.FREE_CONVERSATIONS)
    work.run(sql.FREE_TIMERS)
    turns = work.run(sql.OPEN_TURNS, {"now": work.now})
    for statement in (sql.READY_NOW, sql.BUDGETS_NOW, sql.DUE_NOW):
        work.run(statement, {"now": work.now})
    work.run(sql.UNCERTAIN)
    return Recovered(
        turns=turns,
        deliveries=tuple(DeliveryId(row["id"]) for row in work.all(sql.ALL_UNCERTAIN)),
        questions=tuple(QuestionId(row["id"]) for row in work.all(sql.ORPHANS)),
    )


def prune(work: Work, prune: Prune) -> Pruned:
    """Drop old events and media, never the newest event, never what open work needs."""
    events = 0
    last = prune.events_before
    if prune.events_until is not None:
        last = work.value(sql.LAST_EVENT_UNTIL, {"until": ms(prune.events_until)})
    if last is not None:
        values = {"cursor": last}
        work.run(sql.PRUNED_TO, values)
        events = work.run(sql.PRUNE_EVENTS, values)
    paths: list[str] = []
    if prune.media_before is not None:
        for row in work.all(sql.PRUNE_MEDIA, {"before": ms(prune.media_before)}):
            work.run(sql.PRUNED_MEDIA, {"id": row["id"]})
            paths.append(clean(row["path_key"]))
    return Pruned(events=events, media_paths=tuple(paths))


def set_home(work: Work, home: SetHome) -> None:
    """Make a place the home channel of its platform and account."""
    place = home.place
    see(work, place)
    work.run(
        sql.HOME,
        {
            "platform": storable(place.platform),
            "account": storable(place.account),
            "chat": storable(place.chat),
            "thread": storable(place.thread),
            "actor": storable(str(home.by)),
            "default": int(home.default),
            "now": work.now,
        },
    )


def set_title(work: Work, title: SetTitle) -> None:
    """Name a session."""
    work.run(sql.TITLE, {"session": title.session, "title": storable(title.title)})


def set_model(work: Work, model: SetModel) -> None:
    """Choose the model of a session."""
    work.run(sql.MODEL, {"session": model.session, "model": storable(model.model)})


def revoke_rule(work: Work, revoke: RevokeRule) -> StandingRule | None:
    """End a rule; None when it is unknown or was revoked before."""
    row = work.one(
        sql.REVOKE, {"rule": revoke.rule, "actor": storable(str(revoke.by)), "now": work.now}
    )
    if row is None:
        return None
    session = None if row["session_id"] is None else SessionId(row["session_id"])
    owner = None if session is None else work.one(sql.RULE_CONVERSATION, {"session": session})
    return StandingRule(
        id=RuleId(row["id"]),
        scope=row["scope"],
        session=session,
        server=clean(row["server"]),
        tool=clean(row["tool"]),
        tool_def_sha=clean(row["tool_def_sha"]),
        granted_by=actor_from_text(row["granted_by"]),
        created_at=from_ms(row["created_at"]),
        used_count=row["used_count"],
        conversation=None if owner is None else ConversationId(owner["conversation_id"]),
    )


def use_rule(work: Work, rule: RuleId) -> bool:
    """Count a use of a rule, if it is still in force."""
    return work.run(sql.USE_RULE, {"rule": rule}) > 0


def put_server(work: Work, server: PutServer) -> None:
    """Write an MCP server's state; `since` moves only when the state does."""
    work.run(
        sql.SERVER,
        {
            "name": storable(server.name),
            "config_sha": server.config_sha,
            "server_sha": server.server_sha,
            "state": server.state.value,
            "reason": storable(server.reason),
            "attempts": server.attempts,
            "next_probe_at": ms_or_none(server.next_probe_at),
            "era": storable(server.era),
            "elicits": server.elicits,
            "now": work.now,
        },
    )


def pin_tool(work: Work, pin: PinTool) -> None:
    """Keep a tool as it was allowed, in the place of what was allowed before."""
    tool = pin.tool
    work.run(
        sql.PIN_TOOL,
        {
            "server": storable(tool.server),
            "name": storable(tool.name),
            "alias": storable(tool.alias),
            "def_sha": tool.definition_sha,
            "def": to_json(pin.definition),
            "read_only": tool.read_only,
            "idempotent": tool.idempotent,
            "now": work.now,
        },
    )


def add_audit(work: Work, line: AddAudit) -> None:
    """Add a line to the books."""
    work.run(
        sql.AUDIT,
        {
            "actor": storable(str(line.actor)),
            "surface": line.surface.value,
            "action": storable(line.action),
            "subject": storable(line.subject),
            "detail": to_json(line.detail),
            "now": work.now,
        },
    )


def put_timer(work: Work, timer: PutTimer) -> None:
    """Set something to do at a time, replacing what had its name."""
    work.run(
        sql.TIMER,
        {
            "name": storable(timer.name),
            "kind": storable(timer.kind),
            "due_at": ms(timer.due_at),
            "every_ms": timer.every_ms,
            "payload": to_json(timer.payload),
        },
    )


def claim_timer(work: Work, worker: str, lease_until: datetime) -> DueTimer | None:
    """Take the timer that is due longest."""
    values = {"me": worker, "until": ms(lease_until), "now": work.now}
    row = work.one(sql.CLAIM_TIMER, values)
    if row is None:
        return None
    return DueTimer(
        name=clean(row["name"]),
        kind=clean(row["kind"]),
        payload=object_from_json(row["payload"]),
        every_ms=row["every_ms"],
        due_at=from_ms(row["due_at"]),
    )


def done_timer(work: Work, name: str) -> None:
    """Set a repeating timer to its next time still to come; drop one that was for once."""
    values = {"name": storable(name), "now": work.now}
    if not work.run(sql.TIMER_AGAIN, values):
        work.run(sql.TIMER_DONE, values)
