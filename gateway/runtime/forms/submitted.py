"""Reads JSON answers to a form, as a program or a web page gives them. Pure; same rules as typed ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from gateway.domain.form import FieldKind, Form, FormField, FormState
from gateway.runtime.forms.answers import (
    Invalid,
    Reading,
    Valid,
    number_text,
    plain,
    read_chosen,
    read_text,
)
from gateway.runtime.forms.moves import Move, after, prompt_of
from gateway.runtime.forms.steps import REVIEW, find_asked, key_of, next_field
from gateway.runtime.forms.subschema import schema_problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """Every answer is valid; `content` is what leaves."""

    content: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """What is wrong, by field."""

    errors: Mapping[str, str]


Checked: TypeAlias = Complete | Wrong


def read_value(field: FormField, value: object) -> Reading:
    """Read a JSON value for a field; a text is understood as if it were typed."""
    if field.kind is FieldKind.JSON:
        return _json(field, value)
    if field.kind is FieldKind.MULTI and isinstance(value, list):
        return _several(field, cast("list[object]", value))
    if field.kind is FieldKind.CHOICE and not isinstance(value, str):
        index = _option(field, value)
        return (
            Invalid(reason="That is none of the options.") if index is None else Valid(value=value)
        )
    if isinstance(value, bool):
        fits = field.kind is FieldKind.BOOLEAN
        return Valid(value=value) if fits else Invalid(reason="That is not an answer to it.")
    if isinstance(value, (int, float)) and field.kind in {FieldKind.NUMBER, FieldKind.INTEGER}:
        return read_text(field, number_text(value))
    if isinstance(value, str):
        return read_text(field, value)
    return Invalid(reason="That is not an answer to it.")


def check_all(form: Form, answers: Mapping[str, object]) -> Checked:
    """Judge a whole form at once; optional fields that are absent were left out."""
    if form.root and "" not in answers:
        # The one field is the whole value.
        answers = {"": dict(answers)}
    errors = {name: "The form has no such field." for name in answers if not form.find_field(name)}
    content: dict[str, object] = {}
    for field in form.fields:
        if field.name not in answers:
            if field.required:
                errors[field.name] = "An answer is needed."
            continue
        reading = _read(form, field, answers[field.name])
        if isinstance(reading, Invalid):
            errors[field.name] = reading.reason
        else:
            content[field.name] = reading.value
    return Wrong(errors=errors) if errors else Complete(content=content)


def answer_move(
    form: Form, state: FormState, *, field: str, value: object, skip: bool
) -> Move | Wrong:
    """Return the move that one answer is; `field` must be the one that is asked."""
    asked = find_asked(form, field)
    if asked is None or field != state.field:
        return Wrong(errors={field: "That is not what is asked now."})
    if skip:
        if asked.required:
            return Wrong(errors={field: "An answer is needed."})
        return _go(form, state, Move(field=field, skip=True))
    reading = _read(form, asked, value)
    if isinstance(reading, Invalid):
        return Wrong(errors={field: reading.reason})
    return _go(form, state, Move(field=field, value=reading.value))


def edit_move(form: Form, state: FormState, *, to: str) -> Move | Wrong:
    """Return the move to another field, or to the review; nothing is answered by it."""
    open_field = next_field(form, state)
    reachable = {REVIEW: open_field == REVIEW, **{key_of(item): True for item in form.fields}}
    if not reachable.get(to):
        return Wrong(errors={to: "There is nothing to go to."})
    move = Move(field=state.field, next=to, keep=True)
    return _with_prompt(form, state, move)


def _go(form: Form, state: FormState, move: Move) -> Move:
    following = next_field(form, after(state, move))
    return _with_prompt(
        form, state, Move(field=move.field, value=move.value, skip=move.skip, next=following)
    )


def _with_prompt(form: Form, state: FormState, move: Move) -> Move:
    return Move(
        field=move.field,
        value=move.value,
        skip=move.skip,
        keep=move.keep,
        next=move.next,
        prompt=prompt_of(form, after(state, move)),
    )


def _json(field: FormField, value: object) -> Reading:
    problem = schema_problem(field.schema or {}, value)
    if problem and isinstance(value, str):
        return read_text(field, value)
    return Invalid(reason=problem) if problem else Valid(value=value)


def _read(form: Form, field: FormField, value: object) -> Reading:
    reading = read_value(field, value)
    if form.root and isinstance(reading, Valid) and not isinstance(reading.value, dict):
        return Invalid(reason="A JSON object is needed.")
    return reading


def _several(field: FormField, values: Sequence[object]) -> Reading:
    chosen = [_option(field, value) for value in values]
    known = [index for index in chosen if index is not None]
    if len(known) < len(chosen):
        return Invalid(reason="One of them is none of the options.")
    return read_chosen(field, known)


def _option(field: FormField, value: object) -> int | None:
    """Return the option that is this constant, else the one that is called so."""
    options = list(enumerate(field.options))
    for index, option in options:
        # `True == 1`: the type tells constants apart that are equal only in Python.
        if type(option.value) is type(value) and option.value == value:
            return index
    wanted = plain(value)
    return next((index for index, option in options if option.label == wanted), None)
