"""The inputs of a modal: one for each field, as Slack has them; and their values. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from gateway.domain.form import FieldKind, Form, FormField, Option, Unset
from gateway.domain.text import shorten, show_escapes

MAX_FIELDS: Final = 95
"""A modal takes 100 blocks."""
MAX_LABEL: Final = 200
MAX_HINT: Final = 150
MAX_OPTION: Final = 75
MAX_VALUE: Final = 150
MAX_OPTIONS: Final = 100
MULTILINE_FROM: Final = 200
MAX_INPUT: Final = 3_000
NAME: Final = "value"

Json = dict[str, Any]
_YES_NO: Final = (("Yes", "yes"), ("No", "no"))


def form_of(form: Form, answers: Mapping[str, object], keys: Sequence[str]) -> Json:
    """Return the blocks of a modal, filled in with what is known; `keys` name the fields."""
    return {
        "blocks": [
            _input(item, key, answers.get(key, _default(item)))
            for item, key in zip(form.fields, keys, strict=True)
        ]
    }


def values_of(state: Mapping[str, Any]) -> dict[str, str | Sequence[str]]:
    """Return what was filled in, by field; what was left empty is an empty text or list."""
    values: dict[str, str | Sequence[str]] = {}
    for key, block in cast("Json", state.get("values") or {}).items():
        given = cast("Json", block.get(NAME) or {})
        options = given.get("selected_options")
        option = cast("Json", given.get("selected_option") or {})
        if options is not None:
            values[key] = [str(each["value"]) for each in cast("list[Json]", options)]
        else:
            text = option.get("value") or given.get("selected_date") or given.get("value")
            values[key] = str(text or "")
    return values


def _default(item: FormField) -> object:
    return None if isinstance(item.default, Unset) else item.default


def _input(item: FormField, key: str, now: object) -> Json:
    hint = shorten(show_escapes(item.help), MAX_HINT)
    block: Json = {
        "type": "input",
        "block_id": key,
        "label": _text(shorten(show_escapes(item.label) or key, MAX_LABEL)),
        "element": {"action_id": NAME, **_element(item, now)},
        "optional": not item.required,
    }
    if hint:
        block["hint"] = _text(hint)
    return block


def _element(item: FormField, now: object) -> Json:
    match item.kind:
        case FieldKind.BOOLEAN:
            options = [_option(label, value) for label, value in _YES_NO]
            first = {} if now is None else {"initial_option": options[0 if now else 1]}
            return {"type": "radio_buttons", "options": options, **first}
        case FieldKind.CHOICE | FieldKind.MULTI if len(item.options) <= MAX_OPTIONS:
            return _select(item, now)
        case FieldKind.DATE:
            return {"type": "datepicker", **({} if now is None else {"initial_date": str(now)})}
        case FieldKind.EMAIL:
            return _typed("email_text_input", now)
        case FieldKind.NUMBER | FieldKind.INTEGER:
            return _number(item, now)
        case _:
            return _text_input(item, now)


def _select(item: FormField, now: object) -> Json:
    several = item.kind is FieldKind.MULTI
    labels = [option.label for option in item.options]
    options = [
        # The whole text of a long option is in the card.
        _option(_numbered(option.label, n), _value(option, n, labels, several=several))
        for n, option in enumerate(item.options, 1)
    ]
    chosen = cast("Sequence[object]", now) if several and isinstance(now, list) else [now]
    given = [(type(value), value) for value in chosen]
    first = [
        each
        for each, option in zip(options, item.options, strict=True)
        if (type(option.value), option.value) in given
    ]
    if several:
        element: Json = {"type": "multi_static_select", "options": options}
        return element | ({"initial_options": first} if first else {})
    element = {"type": "static_select", "options": options}
    return element | ({"initial_option": first[0]} if first else {})


def _value(option: Option, number: int, labels: Sequence[str], *, several: bool) -> str:
    """Return what names an option: of several its constant, else its label or its number."""
    constant = option.value
    if several:
        text = ("true" if constant else "false") if isinstance(constant, bool) else str(constant)
        return text if len(text) <= MAX_VALUE else option.label[:MAX_VALUE]
    fits = labels.count(option.label) == 1 and 0 < len(option.label) <= MAX_VALUE
    return option.label if fits else str(number)


def _numbered(label: str, number: int) -> str:
    text = " ".join(show_escapes(label).split()) or str(number)
    return text if len(text) <= MAX_OPTION else shorten(f"{number}. {text}", MAX_OPTION)


def _number(item: FormField, now: object) -> Json:
    element = _typed("number_input", now)
    element["is_decimal_allowed"] = item.kind is FieldKind.NUMBER
    if item.minimum is not None:
        element["min_value"] = _plain(item.minimum)
    if item.maximum is not None:
        element["max_value"] = _plain(item.maximum)
    return element


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _text_input(item: FormField, now: object) -> Json:
    element = _typed("plain_text_input", now)
    longest = item.maximum if item.kind is FieldKind.TEXT else None
    element["multiline"] = item.kind in (FieldKind.TEXT, FieldKind.JSON) and (
        longest is None or longest > MULTILINE_FROM
    )
    if item.kind is FieldKind.TEXT:
        if item.minimum:
            element["min_length"] = min(int(item.minimum), MAX_INPUT)
        if longest is not None:
            element["max_length"] = max(1, min(int(longest), MAX_INPUT))
    return element


def _typed(kind: str, now: object) -> Json:
    return {"type": kind, **({} if now is None else {"initial_value": str(now)[:MAX_INPUT]})}


def _option(label: str, value: str) -> Json:
    return {"text": _text(label), "value": value}


def _text(text: str) -> Json:
    return {"type": "plain_text", "text": text, "emoji": False}
