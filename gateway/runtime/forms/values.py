"""How fields and their values read for a person. Pure; the platform's renderer makes it safe to show."""

import json
from typing import TYPE_CHECKING, Final, cast

from gateway.domain.form import FieldKind, FormField
from gateway.domain.text import shorten
from gateway.runtime.forms.answers import number_text, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_VALUE: Final = 1_000
"""Characters of one value on a card."""

_PHRASES: Final = {
    FieldKind.BOOLEAN: "yes or no",
    FieldKind.CHOICE: "one of the options",
    FieldKind.MULTI: "some of the options, such as 1,3",
    FieldKind.TEXT: "text",
    FieldKind.EMAIL: "an e-mail address",
    FieldKind.URI: "a full address, such as https://example.com",
    FieldKind.DATE: "a date as YYYY-MM-DD",
    FieldKind.DATE_TIME: "date, time and offset, such as 2026-03-31T14:30:00+02:00",
    FieldKind.NUMBER: "a number",
    FieldKind.INTEGER: "a whole number",
    FieldKind.JSON: "JSON",
}
_UNITS: Final = {
    FieldKind.MULTI: "options",
    FieldKind.TEXT: "characters",
    FieldKind.NUMBER: "",
    FieldKind.INTEGER: "",
}


def render_value(field: FormField, value: object) -> str:
    """Return a value as its field shows it: titles for constants, Yes and No, JSON for the rest."""
    match field.kind:
        case FieldKind.BOOLEAN:
            return "Yes" if value else "No"
        case FieldKind.CHOICE:
            return _title(field, value)
        case FieldKind.MULTI:
            titles = [_title(field, item) for item in list_of(value)]
            return shorten(", ".join(titles), MAX_VALUE) or "(none)"
        case FieldKind.JSON:
            return shorten(json.dumps(value, ensure_ascii=False), MAX_VALUE)
        case _:
            return shorten(plain(value), MAX_VALUE)


def list_of(value: object) -> list[object]:
    """Return the items of a stored list answer; anything else has none."""
    return list(cast("Iterable[object]", value)) if isinstance(value, (list, tuple)) else []


def describe(field: FormField) -> str:
    """Return what may be typed for a field, as one phrase."""
    phrase = _PHRASES[field.kind]
    if field.kind is FieldKind.JSON and field.schema:
        schema = json.dumps(dict(field.schema), ensure_ascii=False)
        return f"{phrase} that fits {shorten(schema, MAX_VALUE)}"
    unit = _UNITS.get(field.kind)
    return phrase if unit is None else f"{phrase}{_bounds(field, unit)}"


def _title(field: FormField, value: object) -> str:
    for option in field.options:
        if type(option.value) is type(value) and option.value == value:
            return option.label
    return plain(value)


def _bounds(field: FormField, unit: str) -> str:
    low = "" if field.minimum is None else f"at least {number_text(field.minimum)}"
    high = "" if field.maximum is None else f"at most {number_text(field.maximum)}"
    both = " and ".join(part for part in (low, high) if part)
    return f", {both} {unit}".rstrip() if both else ""
