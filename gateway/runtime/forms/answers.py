"""Reads what a person typed or chose into a value of a field, or says why it is none. Pure.

A value is never guessed: what does not read as one is refused with a sentence for the person.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, TypeAlias

from gateway.domain.canonical import NotCanonical, parse_json
from gateway.domain.form import MAX_TEXT, FieldKind, FormField, Option
from gateway.runtime.forms.subschema import schema_problem

MAX_DIGITS: Final = 300
MAX_COUNT_DIGITS: Final = 4
MAX_JSON: Final = 100_000
"""Characters of a typed JSON value."""

_YES: Final = frozenset({"yes", "y", "true", "on", "1"})
_NO: Final = frozenset({"no", "n", "false", "off", "0"})
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME: Final = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ](?P<time>[0-9]{2}:[0-9]{2})"
    r"(?P<seconds>:[0-9]{2}(?:\.[0-9]{1,6})?)? ?(?P<offset>[Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
_EMAIL: Final = re.compile(
    r"[^\s@<>()\[\],;:\\\"]+@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
    r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)
_URI: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Valid:
    """The value an answer stands for."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """Why an answer is none, as one sentence for the person."""

    reason: str


Reading: TypeAlias = Valid | Invalid


def read_text(field: FormField, text: str) -> Reading:
    """Read one typed answer; options are understood by label, by constant and by number."""
    if not text.strip():
        return Invalid(reason="Nothing was entered.")
    if _SURROGATE.search(text):
        return Invalid(reason="It holds a character that cannot be sent.")
    return _READERS[field.kind](field, text)


def read_several(field: FormField, texts: Sequence[str]) -> Reading:
    """Read what a native form selected, one text for each chosen option."""
    if field.kind is not FieldKind.MULTI:
        if len(texts) != 1:
            return Invalid(reason="Please give exactly one answer.")
        return read_text(field, texts[0])
    chosen: list[int] = []
    for text in texts:
        index = find_option(field.options, text)
        if index is None:
            return _unknown_option(field, text)
        chosen.append(index)
    return read_chosen(field, chosen)


def read_list(field: FormField, text: str, *, shown: range, besides: Sequence[int] = ()) -> Reading:
    """Read options typed as `1,3` or by label; numbers count the `shown` ones from 1.

    `besides` are chosen already and stay so.
    """
    # A label may hold a comma itself, so the whole text is tried first.
    parts = [text]
    if find_option(field.options, text, shown=shown) is None:
        parts = [part for part in text.split(",") if part.strip()]
    chosen = list(besides)
    for part in parts:
        index = find_option(field.options, part, shown=shown)
        if index is None:
            return _unknown_option(field, part)
        chosen.append(index)
    return read_chosen(field, chosen)


def read_chosen(field: FormField, chosen: Sequence[int]) -> Reading:
    """Read chosen options of a list, by index: in the order of the form, each once."""
    values = [option.value for index, option in enumerate(field.options) if index in set(chosen)]
    problem = _count_problem(field, len(values))
    return Invalid(reason=problem) if problem else Valid(value=values)


def find_option(options: Sequence[Option], text: str, *, shown: range | None = None) -> int | None:
    """Return the index of the option somebody named by its label, its number or its constant.

    Numbers count what is `shown` from 1. Without it the text comes from a native form, which
    names constants.
    """
    wanted = text.strip()
    if shown is None:
        constant = _spelled([plain(option.value) for option in options], wanted)
        return (
            _spelled([option.label for option in options], wanted) if constant is None else constant
        )
    label = _spelled([option.label for option in options], wanted)
    if label is not None:
        return label
    if wanted.isascii() and wanted.isdecimal() and len(wanted) <= MAX_COUNT_DIGITS:
        number = int(wanted)
        if 1 <= number <= len(shown):
            return shown[number - 1]
    return _spelled([plain(option.value) for option in options], wanted)


def _spelled(spellings: Sequence[str], wanted: str) -> int | None:
    exact = [index for index, text in enumerate(spellings) if text.strip() == wanted]
    if exact:
        return exact[0]
    folded = wanted.casefold()
    near = [index for index, text in enumerate(spellings) if text.strip().casefold() == folded]
    return near[0] if len(near) == 1 else None


def plain(value: object) -> str:
    """Return a constant as a person would type it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def number_text(number: float) -> str:
    """Return a number as a person would write it: whole ones without a fraction."""
    if isinstance(number, float) and number.is_integer():
        return str(int(number))
    return str(number)


# --- kinds ----------------------------------------------------------------------


def _boolean(field: FormField, text: str) -> Reading:
    del field
    word = text.strip().casefold()
    if word in _YES:
        return Valid(value=True)
    if word in _NO:
        return Valid(value=False)
    return Invalid(reason="Please answer yes or no.")


def _choice(field: FormField, text: str) -> Reading:
    index = find_option(field.options, text, shown=range(len(field.options)))
    return (
        _unknown_option(field, text) if index is None else Valid(value=field.options[index].value)
    )


def _several(field: FormField, text: str) -> Reading:
    return read_list(field, text, shown=range(len(field.options)))


def _unknown_option(field: FormField, text: str) -> Invalid:
    shown = text.strip()[:60]
    return Invalid(reason=f'"{shown}" is none of the {len(field.options)} options.')


def _text(field: FormField, text: str) -> Reading:
    problem = _length_problem(field, text)
    return Invalid(reason=problem) if problem else Valid(value=text)


def _formatted(read: Callable[[str], Reading]) -> Callable[[FormField, str], Reading]:
    def reader(field: FormField, text: str) -> Reading:
        # None of these formats is longer than this, and no search below sees more.
        if len(text) > MAX_TEXT:
            return Invalid(reason=f"At most {MAX_TEXT} characters are possible.")
        reading = read(text.strip())
        if isinstance(reading, Invalid):
            return reading
        problem = _length_problem(field, str(reading.value))
        return Invalid(reason=problem) if problem else reading

    return reader


def _email(text: str) -> Reading:
    if _EMAIL.fullmatch(text):
        return Valid(value=text)
    return Invalid(reason="That is not an e-mail address, such as ana@example.com.")


def _uri(text: str) -> Reading:
    if not _URI.fullmatch(text):
        return Invalid(reason="That is not a full address, such as https://example.com/page.")
    if text.lower().startswith(("http:", "https:")) and not re.match(
        r"https?://[^/?#]", text, re.IGNORECASE
    ):
        return Invalid(reason="That address has no host.")
    return Valid(value=text)


def _date(text: str) -> Reading:
    if not _DATE.fullmatch(text):
        return Invalid(reason="Please write the date as YYYY-MM-DD, such as 2026-03-31.")
    try:
        date.fromisoformat(text)
    except ValueError:
        return Invalid(reason=f"There is no {text} in the calendar.")
    return Valid(value=text)


def _date_time(text: str) -> Reading:
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return Invalid(
            reason="Please write date, time and offset as 2026-03-31T14:30:00+02:00 (or Z)."
        )
    if found["offset"] is None:
        return Invalid(reason="The time zone is missing: add an offset such as +02:00, or Z.")
    full = f"{found['date']}T{found['time']}{found['seconds'] or ':00'}{found['offset'].upper()}"
    try:
        datetime.fromisoformat(full)
    except ValueError:
        return Invalid(reason=f"There is no such time as {text}.")
    return Valid(value=full)


def _number(field: FormField, text: str) -> Reading:
    text = text.strip()
    if "," in text:
        return Invalid(reason='Please write the number with "." and without separators.')
    if not _NUMBER.fullmatch(text) or len(text) > MAX_DIGITS:
        return Invalid(reason="That is not a number, such as 12 or 0.5.")
    number: float = float(text) if "." in text else int(text)
    if not math.isfinite(number):
        return Invalid(reason="That number is too large.")
    return _within(field, number)


def _integer(field: FormField, text: str) -> Reading:
    text = text.strip()
    if not _INTEGER.fullmatch(text) or len(text) > MAX_DIGITS:
        return Invalid(reason="That is not a whole number, such as 12.")
    return _within(field, int(text))


def _json(field: FormField, text: str) -> Reading:
    if len(text) > MAX_JSON:
        return Invalid(reason=f"At most {MAX_JSON} characters are possible.")
    try:
        value = parse_json(text)
    except NotCanonical as error:
        return Invalid(reason=f"That is not JSON: {error}.")
    problem = schema_problem(field.schema or {}, value)
    return Invalid(reason=problem) if problem else Valid(value=value)


_READERS: Final[dict[FieldKind, Callable[[FormField, str], Reading]]] = {
    FieldKind.BOOLEAN: _boolean,
    FieldKind.CHOICE: _choice,
    FieldKind.MULTI: _several,
    FieldKind.TEXT: _text,
    FieldKind.EMAIL: _formatted(_email),
    FieldKind.URI: _formatted(_uri),
    FieldKind.DATE: _formatted(_date),
    FieldKind.DATE_TIME: _formatted(_date_time),
    FieldKind.NUMBER: _number,
    FieldKind.INTEGER: _integer,
    FieldKind.JSON: _json,
}


# --- bounds ---------------------------------------------------------------------


def _within(field: FormField, number: float) -> Reading:
    if field.minimum is not None and number < field.minimum:
        return Invalid(reason=f"It must be at least {number_text(field.minimum)}.")
    if field.maximum is not None and number > field.maximum:
        return Invalid(reason=f"It must be at most {number_text(field.maximum)}.")
    return Valid(value=number)


def _count_problem(field: FormField, count: int) -> str:
    if field.minimum is not None and count < field.minimum:
        return f"Please choose at least {number_text(field.minimum)}."
    if field.maximum is not None and count > field.maximum:
        return f"Please choose at most {number_text(field.maximum)}."
    return ""


def _length_problem(field: FormField, text: str) -> str:
    if field.minimum is not None and len(text) < field.minimum:
        return f"It must have at least {number_text(field.minimum)} characters; it has {len(text)}."
    if field.maximum is not None and len(text) > field.maximum:
        return f"It may have at most {number_text(field.maximum)} characters; it has {len(text)}."
    if field.pattern is None:
        return ""
    # The pattern was judged safe for texts up to this length.
    longest = MAX_TEXT if field.maximum is None else int(field.maximum)
    if len(text) > longest:
        return f"It may have at most {longest} characters; it has {len(text)}."
    try:
        fits = re.search(field.pattern, text) is not None
    except re.error:
        return "The form asks for a pattern that cannot be checked; please decline it."
    return "" if fits else f"It does not fit the pattern {field.pattern}"
