"""Turns a JSON Schema into a form (CONTRACTS §d), or says which part no form can ask.

Strict is for a server's elicitation: what is outside the grammar, or asks for a secret, is
refused. Lenient is for a tool's arguments in guided mode: the same parts become `JSON` fields.
It neither shows nor checks answers; nothing here does I/O.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, cast

from gateway.domain.form import (
    MAX_FIELDS,
    MAX_OPTIONS,
    MAX_TEXT,
    UNSET,
    FieldKind,
    Form,
    FormField,
    Option,
    Unset,
)
from gateway.domain.pattern import bounded_pattern
from gateway.domain.text import shorten

Schema = Mapping[str, object]
Clean = Callable[[str], str]

_LOGIC: Final = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "enum")
_ROOT: Final = (
    *_LOGIC,
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
)
_OF_TYPE: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "boolean": (),
    "array": ("prefixItems", "additionalItems", "contains", "unevaluatedItems"),
}
_FORMATS: Final = {
    "email": FieldKind.EMAIL,
    "uri": FieldKind.URI,
    "date": FieldKind.DATE,
    "date-time": FieldKind.DATE_TIME,
}
_SECRET: Final = re.compile(
    r"(pass ?words?|pass ?phrases?|secrets?|api ?keys?|access ?tokens?)\b", re.IGNORECASE
)
_WORD_BREAK: Final = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|[\W_]+"
)
_DEFINITIONS: Final = ("$defs", "definitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unaskable:
    """Why a schema cannot be put to a person; `property` is "" when it is about the whole."""

    property: str
    problem: str

    def reason(self) -> str:
        """One phrase for the person and the server; the name in it is the server's own text."""
        if not self.property:
            return f"the form {self.problem}"
        return f'the field "{shorten(self.property, 100)}" {self.problem}'


class _Outside(Exception):
    """The grammar has no place for a property; the text says what about it."""


def form_of(
    schema: Mapping[str, object], *, message: str, lenient: bool, clean: Clean = str
) -> Form | Unaskable:
    """Return the form that asks for a value of `schema`.

    `clean` is applied to every text that is shown, never to names, constants or defaults.
    A strict form's answers can be checked field by field; nothing it cannot express is left out.
    """
    text = shorten(clean(message), MAX_TEXT)
    problem = _root_problem(schema, lenient=lenient)
    if problem is not None:
        return _root_form(schema, text) if lenient else problem
    properties = cast("Mapping[str, object]", schema.get("properties") or {})
    required = _required(schema)
    fields: list[FormField] = []
    for name in dict.fromkeys((*properties, *required)):
        try:
            fields.append(
                _field(
                    name,
                    properties.get(name),
                    required=name in required,
                    lenient=lenient,
                    clean=clean,
                )
            )
        except _Outside as outside:
            if not lenient:
                return Unaskable(property=name, problem=str(outside))
            fields.append(
                _json_field(
                    name, properties.get(name), required=name in required, root=schema, clean=clean
                )
            )
    return Form(message=text, fields=tuple(fields))


# --- the root -------------------------------------------------------------------


def _root_problem(schema: Schema, *, lenient: bool) -> Unaskable | None:
    def whole(problem: str) -> Unaskable:
        return Unaskable(property="", problem=problem)

    if schema.get("type", "object") not in ("object", ["object"]):
        return whole("is not an object")
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return whole("has no list of fields")
    count = len(cast("Mapping[str, object]", properties))
    if count > MAX_FIELDS:
        return whole(f"has {count} fields, at most {MAX_FIELDS} can be asked")
    if lenient:
        free = schema.get("additionalProperties", False) is not False
        rules = any(key in schema for key in _ROOT)
        return whole("has no fixed fields") if not count and (free or rules) else None
    if not _is_texts(schema.get("required", [])):
        return whole("does not say properly which fields are required")
    return next(
        (whole(f"uses {key}, which cannot be asked") for key in _ROOT if key in schema), None
    )


def _root_form(schema: Schema, message: str) -> Form:
    # Within the whole schema every local reference leads somewhere.
    local = all(text.startswith("#") for text in _references(schema))
    field = FormField(name="", kind=FieldKind.JSON, label="JSON", schema=schema if local else {})
    return Form(message=message, fields=(field,), root=True)


def _required(schema: Schema) -> tuple[str, ...]:
    names = schema.get("required")
    if not isinstance(names, list):
        return ()
    return tuple(name for name in cast("list[object]", names) if isinstance(name, str))


# --- one property -----------------------------------------------------------------


def _field(name: str, schema: object, *, required: bool, lenient: bool, clean: Clean) -> FormField:
    if schema is None:
        raise _Outside("is required but not described")
    if not isinstance(schema, Mapping):
        raise _Outside("has no type")
    sub = cast("Schema", schema)
    label = _label(name, sub, clean)
    if not lenient and (_names_secret(name) or _names_secret(_text(sub, "title"))):
        raise _Outside("asks for a secret; secrets are never given in a chat")
    kind = _type_of(sub)
    match kind:
        case "boolean" if not _has_options(sub):
            _only(sub, kind)
            shape = FormField(name=name, kind=FieldKind.BOOLEAN, label=label)
        case "array":
            shape = _multi(name, sub, label=label, clean=clean)
        case "string" | "number" | "integer" | "boolean" | "" if _has_options(sub):
            _only(sub, kind, "enum", "oneOf", "anyOf")
            options = _options(sub, kind, clean)
            shape = FormField(name=name, kind=FieldKind.CHOICE, label=label, options=options)
        case "string":
            shape = _string(name, sub, label=label, lenient=lenient)
        case "number" | "integer":
            shape = _number(name, sub, label=label, kind=FieldKind(kind))
        case "":
            raise _Outside("has no type")
        case _:
            raise _Outside(f"has the type {shorten(kind, 40)}, which cannot be asked")
    return FormField(
        name=name,
        kind=shape.kind,
        label=label,
        help=shorten(clean(_text(sub, "description")), MAX_TEXT),
        required=required,
        default=_default(shape, sub.get("default", UNSET)),
        options=shape.options,
        minimum=shape.minimum,
        maximum=shape.maximum,
        pattern=shape.pattern,
    )


def _json_field(
    name: str, schema: object, *, required: bool, root: Schema, clean: Clean
) -> FormField:
    sub: Schema = cast("Schema", schema) if isinstance(schema, Mapping) else {}
    return FormField(
        name=name,
        kind=FieldKind.JSON,
        label=_label(name, sub, clean),
        help=shorten(clean(_text(sub, "description")), MAX_TEXT),
        required=required,
        default=sub.get("default", UNSET),
        schema=_standalone(sub, root=root),
    )


def _string(name: str, schema: Schema, *, label: str, lenient: bool) -> FormField:
    _only(schema, "string", "minLength", "maxLength", "pattern")
    wanted = _text(schema, "format")
    kind = _FORMATS.get(wanted, FieldKind.TEXT)
    if wanted == "password" and not lenient:
        raise _Outside("asks for a password; secrets are never given in a chat")
    # By JSON Schema a format nobody checks is only a hint, so a tool's argument stays a text.
    if wanted and kind is FieldKind.TEXT and not lenient:
        raise _Outside(f"has the format {shorten(wanted, 40)}, which cannot be checked")
    minimum, maximum = _count(schema, "minLength"), _count(schema, "maxLength")
    _in_order(minimum, maximum)
    pattern = schema.get("pattern")
    if pattern is not None and not bounded_pattern(pattern, length=maximum or MAX_TEXT):
        if not lenient:
            raise _Outside("has a pattern that cannot be checked")
        pattern = None
    return FormField(
        name=name,
        kind=kind,
        label=label,
        minimum=minimum,
        maximum=maximum,
        pattern=pattern,
    )


def _number(name: str, schema: Schema, *, label: str, kind: FieldKind) -> FormField:
    whole = kind is FieldKind.INTEGER
    exclusive = ("exclusiveMinimum", "exclusiveMaximum") if whole else ()
    _only(schema, kind.value, "minimum", "maximum", *exclusive)
    minimum, maximum = _bound(schema, "minimum"), _bound(schema, "maximum")
    # Among whole numbers an exclusive bound is the next one inside it.
    above, below = (_bound(schema, key) for key in ("exclusiveMinimum", "exclusiveMaximum"))
    if above is not None:
        next_up = math.floor(above) + 1
        minimum = next_up if minimum is None else max(minimum, next_up)
    if below is not None:
        next_down = math.ceil(below) - 1
        maximum = next_down if maximum is None else min(maximum, next_down)
    _in_order(minimum, maximum)
    return FormField(name=name, kind=kind, label=label, minimum=minimum, maximum=maximum)


def _multi(name: str, schema: Schema, *, label: str, clean: Clean) -> FormField:
    _only(schema, "array")
    items = schema.get("items")
    if not isinstance(items, Mapping):
        raise _Outside("is a list of free values")
    of = cast("Schema", items)
    if not _has_options(of):
        raise _Outside("is a list of free values")
    kind = _type_of(of)
    _only(of, kind, "enum", "anyOf", "oneOf")
    options = _options(of, kind, clean)
    minimum, maximum = _count(schema, "minItems"), _count(schema, "maxItems")
    _in_order(minimum, maximum)
    if minimum is not None and minimum > len(options):
        raise _Outside(f"wants at least {minimum} of {len(options)} options")
    return FormField(
        name=name,
        kind=FieldKind.MULTI,
        label=label,
        options=options,
        minimum=minimum,
        maximum=maximum,
    )


# --- options ------------------------------------------------------------------------


def _has_options(schema: Schema) -> bool:
    if "enum" in schema:
        return True
    return any(
        isinstance(member, Mapping) and "const" in member
        for key in ("oneOf", "anyOf")
        for member in _list(schema, key)
    )


def _options(schema: Schema, kind: str, clean: Clean) -> tuple[Option, ...]:
    listed = _list(schema, "enum")
    constants: list[object] = []
    titles: list[str] = []
    keys = [key for key in ("oneOf", "anyOf") if key in schema]
    if len(keys) > 1:
        raise _Outside("mixes oneOf and anyOf")
    for member in _list(schema, keys[0]) if keys else ():
        if not isinstance(member, Mapping) or "const" not in member:
            raise _Outside("mixes options and types")
        of = cast("Schema", member)
        _only(of, _type_of(of), "const")
        constants.append(of["const"])
        titles.append(_text(of, "title"))
    if not keys:
        constants, titles = list(listed), _enum_names(schema, len(listed))
    elif "enum" in schema:
        kept = {_key(value) for value in listed if _is_scalar(value, "")}
        pairs = [pair for pair in zip(constants, titles, strict=True) if _key(pair[0]) in kept]
        constants, titles = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return _checked_options(constants, titles, kind, clean)


def _checked_options(
    constants: Sequence[object], titles: Sequence[str], kind: str, clean: Clean
) -> tuple[Option, ...]:
    if not constants:
        raise _Outside("offers no options")
    if len(constants) > MAX_OPTIONS:
        raise _Outside(f"has {len(constants)} options, at most {MAX_OPTIONS} can be offered")
    labels: dict[tuple[str, object], Option] = {}
    for value, title in zip(constants, titles, strict=True):
        if not _is_scalar(value, kind):
            raise _Outside("has an option of another type")
        shown = _plain(value)
        if len(shown) > MAX_TEXT:
            raise _Outside(f"has an option of more than {MAX_TEXT} characters")
        label = _line(clean(title)) or _line(clean(shown)) or f'"{shown}"'
        if _key(value) in labels:
            raise _Outside("has the same option twice")
        labels[_key(value)] = Option(value=value, label=label)
    return _told_apart(tuple(labels.values()))


def _told_apart(options: tuple[Option, ...]) -> tuple[Option, ...]:
    """Options of one label show their constant too: a person must see which one they take."""
    seen = [option.label.casefold() for option in options]
    return tuple(
        option
        if seen.count(option.label.casefold()) == 1
        else Option(value=option.value, label=shorten(f"{option.label} ({option.value})", MAX_TEXT))
        for option in options
    )


def _enum_names(schema: Schema, count: int) -> list[str]:
    names = _list(schema, "enumNames")
    # Names that do not pair up one to one would label the wrong constants.
    if len(names) != count or not _is_texts(names):
        return [""] * count
    return cast("list[str]", names)


# --- defaults -------------------------------------------------------------------------


def _default(field: FormField, value: object) -> object | Unset:
    """Return a default the person could have given, UNSET for any other."""
    match field.kind:
        case FieldKind.BOOLEAN:
            return value if isinstance(value, bool) else UNSET
        case FieldKind.CHOICE:
            known = {_key(option.value) for option in field.options}
            return value if _is_scalar(value, "") and _key(value) in known else UNSET
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
    chosen = {_key(item) for item in cast("list[object]", value) if _is_scalar(item, "")}
    found = [option.value for option in field.options if _key(option.value) in chosen]
    if len(found) != len(cast("list[object]", value)) or not _within(field, len(found)):
        return UNSET
    return found


def _default_number(field: FormField, value: object) -> object | Unset:
    if not _is_scalar(value, field.kind.value):
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


# --- reading a schema ---------------------------------------------------------------


def _type_of(schema: Schema) -> str:
    kind = schema.get("type", "")
    if isinstance(kind, list) and len(cast("list[object]", kind)) == 1:
        kind = cast("list[object]", kind)[0]
    if not isinstance(kind, str):
        raise _Outside("allows several types")
    return kind


def _only(schema: Schema, kind: str, *known: str) -> None:
    """Refuse a rule that the form would not keep to; unknown keys are notes."""
    for key in (*_LOGIC, *_OF_TYPE.get(kind, ())):
        if key in schema and key not in known:
            raise _Outside(f"uses {key}, which cannot be asked")


def _bound(schema: Schema, key: str) -> float | None:
    value = schema.get(key)
    if value is None:
        return None
    if not _is_scalar(value, "number"):
        raise _Outside(f"has a {key} that is no number")
    return cast("float", value)


def _count(schema: Schema, key: str) -> int | None:
    value = schema.get(key)
    if value is None:
        return None
    if not _is_scalar(value, "integer") or cast("float", value) < 0:
        raise _Outside(f"has a {key} that is no count")
    return int(cast("float", value))


def _in_order(minimum: float | None, maximum: float | None) -> None:
    if minimum is not None and maximum is not None and minimum > maximum:
        raise _Outside("has bounds that nothing fits")


def _is_scalar(value: object, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            if isinstance(value, float):
                return value.is_integer()
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            if isinstance(value, float):
                return math.isfinite(value)
            return isinstance(value, int) and not isinstance(value, bool)
        case "":
            return isinstance(value, (str, bool)) or _is_scalar(value, "number")
        case _:
            return False


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) for item in cast("list[object]", value)
    )


def _list(schema: Schema, key: str) -> list[object]:
    value = schema.get(key)
    return cast("list[object]", value) if isinstance(value, list) else []


def _text(schema: Schema, key: str) -> str:
    value = schema.get(key)
    return value if isinstance(value, str) else ""


def _key(value: object) -> tuple[str, object]:
    """JSON's own equality: `true` is not 1, and 1.0 is."""
    return ("boolean" if isinstance(value, bool) else "other", value)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else str(value).lower()


def _line(text: str) -> str:
    return shorten(" ".join(text.split()), MAX_TEXT)


def _label(name: str, schema: Schema, clean: Clean) -> str:
    return _line(clean(_text(schema, "title"))) or _line(clean(name)) or "(no name)"


def _names_secret(text: str) -> bool:
    plain = unicodedata.normalize("NFKC", text)
    visible = "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")
    return _SECRET.search(_WORD_BREAK.sub(" ", visible)) is not None


# --- subschemas -----------------------------------------------------------------------


def _standalone(schema: Schema, *, root: Schema) -> Schema:
    """Return `schema` with the definitions it refers to; empty when it refers elsewhere."""
    references = _references(schema)
    kept: dict[str, object] = {}
    for key in _DEFINITIONS:
        if key in root and any(text.startswith(f"#/{key}/") for text in references):
            kept[key] = root[key]
    local = tuple(f"#/{key}/" for key in _DEFINITIONS)
    everything = [*references, *_references(kept)]
    if not all(text.startswith(local) for text in everything):
        return {}
    return {**schema, **kept}


def _references(value: object) -> list[str]:
    found: list[str] = []
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            for key, inner in cast("Mapping[str, object]", item).items():
                if key in ("$ref", "$dynamicRef") and isinstance(inner, str):
                    found.append(inner)
                waiting.append(inner)
        elif isinstance(item, list):
            waiting.extend(cast("list[object]", item))
    return found
