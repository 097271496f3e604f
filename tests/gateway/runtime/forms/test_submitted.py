"""Answers given as JSON: the same rules as for typed ones."""

import pytest

from gateway.domain.form import FieldKind, Form, FormField, FormState, Option
from gateway.runtime.forms.answers import Invalid, Valid
from gateway.runtime.forms.moves import Move
from gateway.runtime.forms.submitted import (
    Complete,
    Wrong,
    answer_move,
    check_all,
    edit_move,
    read_value,
)
from tests.support.requirement import requirement

OPTIONS = (
    Option(value=1, label="One"),
    Option(value=True, label="True"),
    Option(value="two", label="Two"),
)


def asked(kind: FieldKind, **more: object) -> FormField:
    values = {"name": "f", "kind": kind, "label": "F", **more}
    return FormField(**values)  # pyright: ignore[reportArgumentType]


@requirement("elicitation.form.types")
@pytest.mark.parametrize(
    ("kind", "given", "taken"),
    [
        (FieldKind.TEXT, "hello", "hello"),
        (FieldKind.TEXT, "", None),
        (FieldKind.TEXT, 5, None),
        (FieldKind.TEXT, True, None),
        (FieldKind.BOOLEAN, False, False),
        (FieldKind.BOOLEAN, "yes", True),
        (FieldKind.BOOLEAN, 1, None),
        (FieldKind.INTEGER, 7, 7),
        (FieldKind.INTEGER, 7.0, 7),
        (FieldKind.INTEGER, 7.5, None),
        (FieldKind.INTEGER, "7", 7),
        (FieldKind.INTEGER, True, None),
        (FieldKind.NUMBER, 7.5, 7.5),
        (FieldKind.NUMBER, "7,5", None),
        (FieldKind.DATE, "2026-02-30", None),
        (FieldKind.EMAIL, "ana@example.com", "ana@example.com"),
        (FieldKind.CHOICE, 1, 1),
        (FieldKind.CHOICE, True, True),
        (FieldKind.CHOICE, "Two", "two"),
        (FieldKind.CHOICE, 2, None),
        (FieldKind.CHOICE, {"a": 1}, None),
        (FieldKind.MULTI, ["two", 1], [1, "two"]),
        (FieldKind.MULTI, ["Two"], ["two"]),
        (FieldKind.MULTI, ["three"], None),
        (FieldKind.MULTI, "1,3", [1, "two"]),
        (FieldKind.JSON, {"a": [1]}, {"a": [1]}),
        (FieldKind.JSON, None, None),
    ],
)
def test_a_value_is_taken_as_it_is_meant_or_not_at_all(
    kind: FieldKind, given: object, taken: object
) -> None:
    schema = {"type": ["object", "array"]} if kind is FieldKind.JSON else None
    reading = read_value(asked(kind, options=OPTIONS, schema=schema), given)

    assert reading == Valid(value=taken) if taken is not None else isinstance(reading, Invalid)


def test_a_text_for_a_json_field_is_read_when_it_is_no_value_itself() -> None:
    numbers = asked(FieldKind.JSON, schema={"type": "array", "items": {"type": "integer"}})

    assert read_value(numbers, "[1, 2]") == Valid(value=[1, 2])
    assert isinstance(read_value(numbers, "[1.5]"), Invalid)
    assert read_value(asked(FieldKind.JSON, schema={"type": "string"}), "[1]") == Valid(value="[1]")


def test_a_form_that_is_one_value_takes_it_as_it_is() -> None:
    field = FormField(name="", kind=FieldKind.JSON, label="Value", schema={"type": "object"})
    form = Form(message="m", fields=(field,), root=True)

    assert check_all(form, {"a": 1}) == Complete(content={"": {"a": 1}})
    assert check_all(form, {"": {"a": 1}}) == Complete(content={"": {"a": 1}})
    state = FormState(rev=0, field="(value)")
    assert isinstance(answer_move(form, state, field="(value)", value=[1], skip=False), Wrong)
    assert isinstance(answer_move(form, state, field="(value)", value={"a": 1}, skip=False), Move)


def test_the_review_can_be_gone_to_only_when_all_is_answered() -> None:
    form = Form(message="m", fields=(asked(FieldKind.TEXT),))
    open_, done = FormState(rev=0, field="f"), FormState(rev=1, field="f", answers={"f": "x"})

    assert isinstance(edit_move(form, open_, to=""), Wrong)
    assert isinstance(edit_move(form, open_, to="g"), Wrong)
    back = edit_move(form, done, to="")
    assert isinstance(back, Move)
    assert (back.keep, back.next) == (True, "")
