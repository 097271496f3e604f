"""Turns a JSON Schema into a form (CONTRACTS §d), or says which part no form can ask.

Strict is for a server's elicitation: what is outside the grammar, or asks for a secret, is
refused. Lenient is for a tool's arguments in guided mode: the same parts become `JSON` fields.
It neither shows nor checks answers; nothing here does I/O.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from gateway.domain.form import MAX_FIELDS, MAX_TEXT, UNSET, FieldKind, Form, FormField
from gateway.domain.pattern import bounded_pattern
from gateway.domain.schema_default import default_of
from gateway.domain.schema_options import has_options, options_of
from gateway.domain.schema_reading import (
    LOGIC,
    Clean,
    OutsideGrammar,
    Schema,
    bound_of,
    check_order,
    count_of,
    is_texts,
    label_of,
    names_secret,
    only_known,
    references_of,
    standalone,
    text_of,
    type_of,
)
from gateway.domain.text import shorten

_ROOT: Final = (
    *LOGIC,
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
)
_FORMATS: Final = {
    "email": FieldKind.EMAIL,
    "uri": FieldKind.URI,
    "date": FieldKind.DATE,
    "date-time": FieldKind.DATE_TIME,
}


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
        except OutsideGrammar as outside:
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
    count = len({*cast("Mapping[str, object]", properties), *_required(schema)})
    if count > MAX_FIELDS:
        return whole(f"has {count} fields, at most {MAX_FIELDS} can be asked")
    if lenient:
        free = schema.get("additionalProperties", False) is not False
        rules = any(key in schema for key in _ROOT)
        return whole("has no fixed fields") if not count and (free or rules) else None
    if not is_texts(schema.get("required", [])):
        return whole("does not say properly which fields are required")
    return next(
        (whole(f"uses {key}, which cannot be asked") for key in _ROOT if key in schema), None
    )


def _root_form(schema: Schema, message: str) -> Form:
    # Within the whole schema every local reference leads somewhere.
    local = all(text.startswith("#") for text in references_of(schema))
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
        raise OutsideGrammar("is required but not described")
    if not isinstance(schema, Mapping):
        raise OutsideGrammar("has no type")
    sub = cast("Schema", schema)
    label = label_of(name, sub, clean)
    if not lenient and (names_secret(name) or names_secret(text_of(sub, "title"))):
        raise OutsideGrammar("asks for a secret; secrets are never given in a chat")
    kind = type_of(sub)
    match kind:
        case "boolean" if not has_options(sub):
            only_known(sub, kind)
            shape = FormField(name=name, kind=FieldKind.BOOLEAN, label=label)
        case "array":
            shape = _multi(name, sub, label=label, clean=clean)
        case "string" | "number" | "integer" | "boolean" | "" if has_options(sub):
            only_known(sub, kind, "enum", "oneOf", "anyOf")
            options = options_of(sub, kind, clean)
            shape = FormField(name=name, kind=FieldKind.CHOICE, label=label, options=options)
        case "string":
            shape = _string(name, sub, label=label, lenient=lenient)
        case "number" | "integer":
            shape = _number(name, sub, label=label, kind=FieldKind(kind))
        case "":
            raise OutsideGrammar("has no type")
        case _:
            raise OutsideGrammar(f"has the type {shorten(kind, 40)}, which cannot be asked")
    return FormField(
        name=name,
        kind=shape.kind,
        label=label,
        help=shorten(clean(text_of(sub, "description")), MAX_TEXT),
        required=required,
        default=default_of(shape, sub.get("default", UNSET)),
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
        label=label_of(name, sub, clean),
        help=shorten(clean(text_of(sub, "description")), MAX_TEXT),
        required=required,
        default=sub.get("default", UNSET),
        schema=standalone(sub, root=root),
    )


def _string(name: str, schema: Schema, *, label: str, lenient: bool) -> FormField:
    only_known(schema, "string", "minLength", "maxLength", "pattern")
    wanted = text_of(schema, "format")
    kind = _FORMATS.get(wanted, FieldKind.TEXT)
    if wanted == "password" and not lenient:
        raise OutsideGrammar("asks for a password; secrets are never given in a chat")
    # By JSON Schema a format nobody checks is only a hint, so a tool's argument stays a text.
    if wanted and kind is FieldKind.TEXT and not lenient:
        raise OutsideGrammar(f"has the format {shorten(wanted, 40)}, which cannot be checked")
    minimum, maximum = count_of(schema, "minLength"), count_of(schema, "maxLength")
    check_order(minimum, maximum)
    pattern = schema.get("pattern")
    if pattern is not None and not bounded_pattern(pattern, length=maximum or MAX_TEXT):
        if not lenient:
            raise OutsideGrammar("has a pattern that cannot be checked")
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
    only_known(schema, kind.value, "minimum", "maximum", *exclusive)
    minimum, maximum = bound_of(schema, "minimum"), bound_of(schema, "maximum")
    # Among whole numbers an exclusive bound is the next one inside it.
    above, below = (bound_of(schema, key) for key in ("exclusiveMinimum", "exclusiveMaximum"))
    if above is not None:
        next_up = math.floor(above) + 1
        minimum = next_up if minimum is None else max(minimum, next_up)
    if below is not None:
        next_down = math.ceil(below) - 1
        maximum = next_down if maximum is None else min(maximum, next_down)
    check_order(minimum, maximum)
    return FormField(name=name, kind=kind, label=label, minimum=minimum, maximum=maximum)


def _multi(name: str, schema: Schema, *, label: str, clean: Clean) -> FormField:
    only_known(schema, "array")
    items = schema.get("items")
    if not isinstance(items, Mapping):
        raise OutsideGrammar("is a list of free values")
    of = cast("Schema", items)
    if not has_options(of):
        raise OutsideGrammar("is a list of free values")
    kind = type_of(of)
    only_known(of, kind, "enum", "anyOf", "oneOf")
    options = options_of(of, kind, clean)
    minimum, maximum = count_of(schema, "minItems"), count_of(schema, "maxItems")
    check_order(minimum, maximum)
    if minimum is not None and minimum > len(options):
        raise OutsideGrammar(f"wants at least {minimum} of {len(options)} options")
    return FormField(
        name=name,
        kind=FieldKind.MULTI,
        label=label,
        options=options,
        minimum=minimum,
        maximum=maximum,
    )
