"""The default of a field: kept when the person could have given it, dropped otherwise."""

import re
from datetime import date, datetime
from typing import cast

from gateway.domain.form import MAX_TEXT, UNSET, FieldKind, FormField, Unset
from gateway.domain.schema_reading import is_scalar, json_key


def default_of(field: FormField, value: object) -> object | Unset:
    """Return a default the person could have given, UNSET for any other."""
    match field.kind:
        case FieldKind.BOOLEAN:
            return value if isinstance(value, bool) else UNSET
        case FieldKind.CHOICE:
            known = {json_key(option.value) for option in field.options}
            return value if is_scalar(value, "") and json_key(value) in known else UNSET
        case FieldKind.MULTI:
            return _default_list(field, value)
        case FieldKind.NUMBER | FieldKind.INTEGER:
            return _default_number(field, value)
        case FieldKind.JSON:
            return value
        case (
            FieldKind.TEXT | FieldKind.EMAIL | FieldKind.URI | FieldKind.DATE | FieldKind.DATE_TIME
        ):
            return value if isinstance(value, str) and _text_fits(field, value) else UNSET


def _default_list(field: FormField, value: object) -> object | Unset:
    if not isinstance(value, list):
        return UNSET
    chosen = {json_key(item) for item in cast("list[object]", value) if is_scalar(item, "")}
    found = [option.value for option in field.options if json_key(option.value) in chosen]
    if len(found) != len(cast("list[object]", value)) or not _within(field, len(found)):
        return UNSET
    return found


def _default_number(field: FormField, value: object) -> object | Unset:
    if not is_scalar(value, field.kind.value):
        return UNSET
    number = cast("float", value)
    if not _within(field, number):
        return UNSET
    return int(number) if field.kind is FieldKind.INTEGER else number


def _text_fits(field: FormField, value: str) -> bool:
    if len(value) > MAX_TEXT or not _within(field, len(value)):
        return False
    if field.pattern is not None and not re.search(field.pattern, value):
        return False
    try:
        match field.kind:
            case FieldKind.DATE:
                return len(value) == len("2026-01-01") and bool(date.fromisoformat(value))
            case FieldKind.DATE_TIME:
                return "T" in value.upper() and datetime.fromisoformat(value).tzinfo is not None
            case FieldKind.EMAIL:
                return bool(re.fullmatch(r"[^@\s]+@[^@\s]+", value))
            case FieldKind.URI:
                return bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", value))
            case _:
                return True
    except ValueError:
        return False


def _within(field: FormField, number: float) -> bool:
    return (field.minimum is None or number >= field.minimum) and (
        field.maximum is None or number <= field.maximum
    )
