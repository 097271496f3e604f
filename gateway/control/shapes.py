"""Questions and forms as JSON, for the API's answers and for what the shell prints; and read back.

Times are epoch milliseconds. Values under redacted keys never leave.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from gateway.domain.canonical import canonical
from gateway.domain.form import UNSET, FieldKind, Form, FormField, FormState, Option
from gateway.domain.ids import Actor, ChatType, Place, QuestionId
from gateway.domain.operations.pairing import Pairing
from gateway.domain.operations.upkeep import StandingRule
from gateway.domain.question import Action, Question, QuestionKind, QuestionState, Record
from gateway.runtime.redact import redacted

Json = Mapping[str, Any]

_NOWHERE = Place(platform="control", chat="-", chat_type=ChatType.DM)


def ms(at: datetime) -> int:
    """Return a time as the API writes it."""
    return round(at.timestamp() * 1000)


def from_ms(value: int) -> datetime:
    """Read a time of the API."""
    return datetime.fromtimestamp(value / 1000, UTC)


def question_json(question: Question, *, redact: Sequence[str]) -> dict[str, Any]:
    """Return a question, open or settled, with its arguments as its card shows them."""
    decision = question.decision
    arguments = None
    if question.arguments is not None:
        arguments = redacted(json.loads(question.arguments), redact=redact)
    return {
        "id": question.id,
        "short": question.short,
        "kind": question.kind.value,
        "server": question.server,
        "tool": question.tool,
        "arguments": arguments,
        "args_sha": question.args_sha,
        "requested_by": str(question.requester),
        "requester_name": question.requester.name,
        "session_key": question.place.session_key,
        "body": question.body,
        "actions": [action.value for action in question.actions],
        "quorum": question.quorum,
        "state": question.state.value,
        "created_at": ms(question.created_at),
        "expires_at": ms(question.expires_at),
        "decision": None if decision is None else decision.action.value,
        "decided_by": None if decision is None or decision.by is None else str(decision.by),
        "decided_via": None if decision is None else decision.via.value,
        "decided_at": None if decision is None else ms(decision.at),
        "reason": "" if decision is None else decision.reason,
        **({} if question.form is None else {"message": question.form.message}),
    }


def record_json(record: Record) -> dict[str, Any]:
    """Return what the books hold of a question."""
    return {
        "result": record.result,
        "attempts": [
            {
                "by": str(item.by),
                "via": item.via.value,
                "action": item.action.value,
                "outcome": item.outcome,
                "reason": item.reason,
                "at": ms(item.at),
            }
            for item in record.attempts
        ],
    }


def pairing_json(pairing: Pairing) -> dict[str, Any]:
    """Return who was given a code and what became of it; never the code."""
    expires, decided = pairing.expires_at, pairing.decided_at
    return {
        "id": str(pairing.id),
        "platform": pairing.platform,
        "account": pairing.account,
        "user_id": pairing.user,
        "user_name": pairing.name,
        "state": pairing.state.value,
        "created_at": ms(pairing.created_at),
        "expires_at": None if expires is None else ms(expires),
        "decided_by": None if pairing.decided_by is None else str(pairing.decided_by),
        "decided_at": None if decided is None else ms(decided),
    }


def decision_json(question: Question) -> dict[str, Any]:
    """Return who ended a question and how."""
    shown = question_json(question, redact=())
    return {key: shown[key] for key in ("decision", "decided_by", "decided_via", "decided_at")}


def question_from_json(data: Json, *, form: Form | None = None) -> Question:
    """Read an open question back, as far as a card shows it."""
    arguments = data["arguments"]
    return Question(
        id=QuestionId(data["id"]),
        short=data["short"],
        kind=QuestionKind(data["kind"]),
        place=_NOWHERE,
        shown_in=_NOWHERE,
        requester=Actor.parse(data["requested_by"], name=data.get("requester_name", "")),
        actions=tuple(Action(action) for action in data["actions"]),
        body=data["body"],
        args_sha=data["args_sha"],
        created_at=from_ms(data["created_at"]),
        expires_at=from_ms(data["expires_at"]),
        server=data["server"],
        tool=data["tool"],
        arguments=None if arguments is None else canonical(arguments),
        form=form,
        state=QuestionState(data["state"]),
    )


def form_json(form: Form, state: FormState) -> dict[str, Any]:
    """Return a form and how far it has come (CONTRACTS §d)."""
    return {
        "message": form.message,
        "root": form.root,
        "fields": [_field_json(item) for item in form.fields],
        "answers": dict(state.answers),
        "skipped": sorted(state.skipped),
    }


def form_from_json(data: Json, *, rev: int, field: str) -> tuple[Form, FormState]:
    """Read a form and its state back."""
    form = Form(
        message=data["message"],
        root=data["root"],
        fields=tuple(_field_from_json(item) for item in data["fields"]),
    )
    state = FormState(
        rev=rev, field=field, answers=data["answers"], skipped=frozenset(data["skipped"])
    )
    return form, state


def rule_json(rule: StandingRule) -> dict[str, Any]:
    """Return a standing rule."""
    return {
        "id": str(rule.id),
        "server": rule.server,
        "tool": rule.tool,
        "scope": rule.scope,
        "session": None if rule.session is None else str(rule.session),
        "definition_sha": rule.tool_def_sha,
        "granted_by": str(rule.granted_by),
        "created_at": ms(rule.created_at),
        "used": rule.used_count,
    }


def _field_json(field: FormField) -> dict[str, Any]:
    given: dict[str, Any] = {
        "name": field.name,
        "kind": field.kind.value,
        "label": field.label,
        "help": field.help,
        "required": field.required,
    }
    optional: dict[str, Any] = {
        "options": [{"value": item.value, "label": item.label} for item in field.options] or None,
        "min": field.minimum,
        "max": field.maximum,
        "pattern": field.pattern,
        "schema": None if field.schema is None else dict(field.schema),
    }
    given |= {key: value for key, value in optional.items() if value is not None}
    # An absent default is no key at all: `null` is a default of its own.
    return given if field.default is UNSET else {**given, "default": field.default}


def _field_from_json(data: Json) -> FormField:
    options = cast("list[dict[str, Any]]", data.get("options", []))
    return FormField(
        name=data["name"],
        kind=FieldKind(data["kind"]),
        label=data["label"],
        help=data["help"],
        required=data["required"],
        default=data.get("default", UNSET),
        options=tuple(Option(value=item["value"], label=item["label"]) for item in options),
        minimum=data.get("min"),
        maximum=data.get("max"),
        pattern=data.get("pattern"),
        schema=data.get("schema"),
    )
