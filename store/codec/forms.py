"""Forms and how far they have come, in columns."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.form import UNSET, FieldKind, Form, FormField, FormState, Option
from store.codec.columns import (
    RowLike,
    clean,
    from_json,
    list_from_json,
    object_from_json,
    to_json,
)


def form_to_json(form: Form) -> str:
    """Return the text of the `form` column."""
    return to_json(
        {
            "message": form.message,
            "root": form.root,
            "fields": [_field_to_plain(field) for field in form.fields],
        }
    )


def form_from_json(text: str) -> Form:
    """Read the `form` column.

    Raises:
        ValueError: It is not a form.
    """
    raw = from_json(text)
    return Form(
        message=raw["message"],
        fields=tuple(_field_from_plain(item) for item in raw["fields"]),
        root=raw["root"],
    )


def form_state_from_row(row: RowLike) -> FormState:
    """Read a `form_progress` row; damaged answers count as not given."""
    return FormState(
        rev=row["rev"],
        field=clean(row["field"]),
        answers=object_from_json(row["answers"]),
        skipped=frozenset(str(name) for name in list_from_json(row["skipped"])),
    )


def _field_to_plain(field: FormField) -> dict[str, object]:
    plain: dict[str, object] = {
        "name": field.name,
        "kind": field.kind.value,
        "label": field.label,
        "help": field.help,
        "required": field.required,
        "options": [{"value": item.value, "label": item.label} for item in field.options],
        "min": field.minimum,
        "max": field.maximum,
        "pattern": field.pattern,
        "schema": field.schema,
    }
    # An absent default is no key at all: `null` is a default of its own.
    if field.default is not UNSET:
        plain["default"] = field.default
    return plain


def _field_from_plain(raw: Mapping[str, Any]) -> FormField:
    return FormField(
        name=raw["name"],
        kind=FieldKind(raw["kind"]),
        label=raw["label"],
        help=raw["help"],
        required=raw["required"],
        default=raw.get("default", UNSET),
        options=tuple(Option(value=item["value"], label=item["label"]) for item in raw["options"]),
        minimum=raw["min"],
        maximum=raw["max"],
        pattern=raw["pattern"],
        schema=raw["schema"],
    )
