from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gateway.domain.form import (
    MAX_FIELDS,
    MAX_OPTIONS,
    MAX_TEXT,
    UNSET,
    FieldKind,
    Form,
    FormField,
    Option,
)
from gateway.domain.schema_form import Unaskable, form_of
from tests.support.requirement import requirement


def objects(
    properties: Mapping[str, object] | None = None, *required: str, **more: object
) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties or {},
        "required": list(required),
        **more,
    }


def valid(schema: Any, value: Any) -> bool:
    judge: Any = Draft202012Validator(schema)
    return bool(judge.is_valid(value))


def strict(schema: Mapping[str, object]) -> Form:
    form = form_of(schema, message="please", lenient=False)
    assert isinstance(form, Form), form
    return form


def refused(schema: Mapping[str, object]) -> Unaskable:
    found = form_of(schema, message="please", lenient=False)
    assert isinstance(found, Unaskable), found
    return found


def lenient(schema: Mapping[str, object]) -> Form:
    form = form_of(schema, message="please", lenient=True)
    assert isinstance(form, Form), form
    return form


def one(schema: Mapping[str, object]) -> FormField:
    return strict(objects({"it": schema})).fields[0]


@requirement("elicitation.form.types")
@pytest.mark.parametrize(
    ("schema", "kind", "bounds"),
    [
        ({"type": "boolean"}, FieldKind.BOOLEAN, (None, None)),
        ({"type": "string"}, FieldKind.TEXT, (None, None)),
        ({"type": "string", "minLength": 2, "maxLength": 9}, FieldKind.TEXT, (2, 9)),
        ({"type": "string", "format": "email"}, FieldKind.EMAIL, (None, None)),
        ({"type": "string", "format": "uri"}, FieldKind.URI, (None, None)),
        ({"type": "string", "format": "date"}, FieldKind.DATE, (None, None)),
        ({"type": "string", "format": "date-time"}, FieldKind.DATE_TIME, (None, None)),
        ({"type": "number", "minimum": 0.5, "maximum": 2}, FieldKind.NUMBER, (0.5, 2)),
        ({"type": "integer", "minimum": 1}, FieldKind.INTEGER, (1, None)),
        ({"type": "integer", "exclusiveMinimum": 0}, FieldKind.INTEGER, (1, None)),
        ({"type": "integer", "exclusiveMaximum": 9.5}, FieldKind.INTEGER, (None, 9)),
        ({"type": "string", "enum": ["a", "b"]}, FieldKind.CHOICE, (None, None)),
        (
            {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 2},
            FieldKind.MULTI,
            (1, 2),
        ),
        ({"type": ["boolean"]}, FieldKind.BOOLEAN, (None, None)),
    ],
)
def test_every_type_of_the_grammar_is_a_field(
    schema: dict[str, object], kind: FieldKind, bounds: tuple[float | None, float | None]
) -> None:
    field = one(schema)

    assert field.kind is kind
    assert (field.minimum, field.maximum) == bounds


@requirement("elicitation.form.types")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]},
        {
            "type": "string",
            "oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}],
        },
        {
            "type": "string",
            "enum": ["a", "b"],
            "oneOf": [
                {"const": "a", "title": "First"},
                {"const": "b", "title": "Second"},
                {"const": "c", "title": "Third"},
            ],
        },
    ],
)
def test_every_spelling_of_an_enum_shows_titles_and_sends_constants(
    schema: dict[str, object],
) -> None:
    assert one(schema).options == (
        Option(value="a", label="First"),
        Option(value="b", label="Second"),
    )


@pytest.mark.parametrize("key", ["anyOf", "oneOf"])
def test_a_multi_select_takes_titled_options(key: str) -> None:
    items = {key: [{"const": "a", "title": "First"}, {"const": "b"}]}

    field = one({"type": "array", "items": items, "default": ["b"]})

    assert [option.label for option in field.options] == ["First", "b"]
    assert field.default == ["b"]


def test_no_properties_mean_a_confirmation() -> None:
    assert strict({"type": "object", "properties": {}}) == Form(message="please")


def test_titles_descriptions_and_the_order_of_the_schema_are_kept() -> None:
    form = strict(
        objects(
            {
                "b": {"type": "string", "title": "Bee\n  two", "description": "say it"},
                "a": {"type": "boolean"},
            },
            "a",
        )
    )

    assert [(item.name, item.label, item.required) for item in form.fields] == [
        ("b", "Bee two", False),
        ("a", "a", True),
    ]
    assert form.fields[0].help == "say it"


def test_options_of_the_same_label_can_be_told_apart() -> None:
    field = one({"type": "string", "enum": ["x", "y", "z"], "enumNames": ["On", "on", "Off"]})

    assert [option.label for option in field.options] == ["On (x)", "on (y)", "Off"]


def test_names_that_do_not_pair_up_with_the_constants_are_ignored() -> None:
    field = one({"type": "string", "enum": ["x", "y"], "enumNames": ["Only one"]})

    assert [option.label for option in field.options] == ["x", "y"]


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        ({"type": "boolean", "default": False}, False),
        ({"type": "boolean", "default": 1}, UNSET),
        ({"type": "integer", "default": 3.0}, 3),
        ({"type": "integer", "default": True}, UNSET),
        ({"type": "integer", "minimum": 5, "default": 3}, UNSET),
        ({"type": "number", "default": float("inf")}, UNSET),
        ({"type": "string", "default": None}, UNSET),
        ({"type": "string", "maxLength": 2, "default": "abc"}, UNSET),
        ({"type": "string", "pattern": "^a+$", "default": "b"}, UNSET),
        ({"type": "string", "pattern": "^a+$", "default": "aa"}, "aa"),
        ({"type": "string", "format": "date", "default": "2026-02-30"}, UNSET),
        ({"type": "string", "format": "date", "default": "2026-02-28"}, "2026-02-28"),
        ({"type": "string", "format": "date-time", "default": "2026-02-28T10:00:00"}, UNSET),
        (
            {"type": "string", "format": "date-time", "default": "2026-02-28T10:00:00Z"},
            "2026-02-28T10:00:00Z",
        ),
        ({"type": "string", "format": "email", "default": "nobody"}, UNSET),
        ({"type": "string", "format": "uri", "default": "no uri"}, UNSET),
        ({"type": "string", "enum": ["a"], "default": "b"}, UNSET),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b", "c"]}, UNSET),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b", "a"]}, ["a", "b"]),
    ],
)
def test_a_default_the_person_could_not_give_is_dropped(
    schema: dict[str, object], kept: object
) -> None:
    default = one(schema).default

    assert default == kept
    assert type(default) is type(kept)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, "no type"),
        (True, "no type"),
        ({"type": "object"}, "the type object"),
        ({"type": "null"}, "the type null"),
        ({"type": ["string", "null"]}, "several types"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "no type"),
        ({"type": "string", "anyOf": [{"minLength": 1}]}, "anyOf"),
        ({"$ref": "#/$defs/x"}, "no type"),
        ({"type": "string", "$ref": "#/$defs/x"}, "$ref"),
        ({"type": "string", "not": {"const": "x"}}, "not"),
        ({"type": "string", "format": "hostname"}, "hostname"),
        ({"type": "string", "pattern": "(a+)+$"}, "pattern"),
        ({"type": "string", "pattern": 5}, "pattern"),
        ({"type": "string", "minLength": -1}, "minLength"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "nothing fits"),
        ({"type": "number", "multipleOf": 0.5}, "multipleOf"),
        ({"type": "number", "exclusiveMinimum": 0}, "exclusiveMinimum"),
        ({"type": "integer", "minimum": "1"}, "no number"),
        ({"type": "array", "items": {"type": "string"}}, "free values"),
        ({"type": "array"}, "free values"),
        ({"type": "array", "items": {"enum": ["a"]}, "contains": {}}, "contains"),
        ({"type": "array", "items": {"enum": ["a"]}, "minItems": 2}, "at least 2 of 1"),
        ({"type": "string", "enum": []}, "no options"),
        ({"type": "string", "enum": [1]}, "another type"),
        ({"type": "string", "enum": ["a", None]}, "another type"),
        ({"type": "string", "enum": ["a", "a"]}, "twice"),
        ({"type": "string", "enum": [str(n) for n in range(MAX_OPTIONS + 1)]}, "201 options"),
        ({"type": "string", "enum": ["a"], "minLength": 3}, "minLength"),
        ({"type": "string", "oneOf": [{"const": "a"}, {"type": "string"}]}, "mixes"),
        ({"type": "string", "enum": ["a" * (MAX_TEXT + 1)]}, "2000 characters"),
    ],
)
def test_what_the_grammar_lacks_is_refused_by_name_and_becomes_json_in_guided_mode(
    schema: object, words: str
) -> None:
    document = objects({"fine": {"type": "boolean"}, "odd": schema})

    problem = refused(document)

    assert problem.property == "odd"
    assert words in problem.reason()
    guided = lenient(document)
    assert guided.fields[0].kind is FieldKind.BOOLEAN
    # What is only too costly or unknown to check stays a text.
    assert guided.fields[1].kind in {FieldKind.JSON, FieldKind.TEXT}
    assert guided.fields[1].name == "odd"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array", "items": {}}, "not an object"),
        (objects(anyOf=[True]), "anyOf"),
        (objects(patternProperties={"x": {}}), "patternProperties"),
        ({"type": "object", "properties": []}, "no list of fields"),
        ({"type": "object", "properties": {}, "required": "a"}, "required"),
        (
            objects({f"f{n}": {"type": "string"} for n in range(MAX_FIELDS + 1)}),
            "31 fields",
        ),
    ],
)
def test_a_form_that_cannot_be_asked_as_a_whole_is_refused(
    schema: dict[str, object], words: str
) -> None:
    problem = refused(schema)

    assert problem.property == ""
    assert words in problem.reason()


def test_a_required_field_that_is_not_described_is_refused() -> None:
    problem = refused(objects({"a": {"type": "string"}}, "a", "b"))

    assert (problem.property, problem.problem) == ("b", "is required but not described")


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("password", ""),
        ("db_password", ""),
        ("dbPassword", ""),
        ("userpassword", ""),
        ("PASSWORD2", ""),
        ("passphrase", ""),
        ("clientSecret", ""),
        ("apiKey", ""),
        ("api_key", ""),
        ("X-API-Key", ""),
        ("APIKey", ""),
        ("access-token", ""),
        ("AccessTokens", ""),
        ("x", "Your password, please"),
        ("x", "API key"),
        ("x", "Pass\u200bword"),
        ("x", "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44"),
    ],
)
def test_a_field_that_asks_for_a_secret_is_refused(name: str, title: str) -> None:
    problem = refused(objects({name: {"type": "string", "title": title}}))

    assert problem.property == name
    assert "secret" in problem.problem


def test_a_password_format_is_refused() -> None:
    assert "password" in refused(objects({"x": {"type": "string", "format": "password"}})).problem


@pytest.mark.parametrize("name", ["secretary", "token", "keyboard", "compass", "passwordless"])
def test_a_word_that_only_looks_like_a_secret_is_asked(name: str) -> None:
    assert strict(objects({name: {"type": "string"}})).fields[0].name == name


def test_guided_mode_asks_for_secrets_and_keeps_unknown_formats_as_text() -> None:
    form = lenient(
        objects({"apiKey": {"type": "string"}, "id": {"type": "string", "format": "uuid"}})
    )

    assert [item.kind for item in form.fields] == [FieldKind.TEXT, FieldKind.TEXT]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        objects({f"f{n}": {"type": "string"} for n in range(MAX_FIELDS + 1)}),
    ],
)
def test_guided_mode_asks_a_root_without_fields_as_one_json(schema: dict[str, object]) -> None:
    form = lenient(schema)

    assert form.root
    assert [(item.kind, item.schema) for item in form.fields] == [(FieldKind.JSON, schema)]


def test_a_json_field_carries_the_definitions_it_refers_to() -> None:
    definitions = {"point": {"type": "object", "properties": {"x": {"type": "number"}}}}
    form = lenient(objects({"at": {"$ref": "#/$defs/point"}}, **{"$defs": definitions}))

    schema = form.fields[0].schema
    assert schema == {"$ref": "#/$defs/point", "$defs": definitions}
    assert not valid(schema, {"x": "one"})


@pytest.mark.parametrize("target", ["https://example.com/schema.json", "#/properties/other"])
def test_a_reference_that_leads_out_of_the_subschema_is_never_followed(target: str) -> None:
    form = lenient(objects({"at": {"$ref": target}}))

    assert form.fields[0].schema == {}


def test_shown_texts_are_cleaned_first_and_capped_then() -> None:
    def without_x(text: str) -> str:
        return text.replace("x", "")

    form = form_of(
        objects({"x1": {"type": "string", "enum": ["xa"], "description": "x" * 9_000 + "y"}}),
        message="x" * 3_000 + "m" * 3_000,
        lenient=False,
        clean=without_x,
    )

    assert isinstance(form, Form)
    field = form.fields[0]
    assert form.message == "m" * (MAX_TEXT - 1) + "…"
    assert (field.name, field.label, field.help) == ("x1", "1", "y")
    assert field.options == (Option(value="xa", label="a"),)


# --- for any schema of the grammar, any answer the form allows is valid ------------

_names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
_small = st.integers(0, 5)


@st.composite
def _property(draw: st.DrawFn) -> dict[str, object]:
    match draw(st.sampled_from(["boolean", "string", "choice", "titled", "multi", "number"])):
        case "boolean":
            return {"type": "boolean"}
        case "string":
            low = draw(_small)
            return {"type": "string", "minLength": low, "maxLength": low + draw(_small)}
        case "choice":
            return {"type": "string", "enum": draw(st.lists(_names, min_size=1, unique=True))}
        case "titled":
            values = draw(st.lists(_names, min_size=1, unique=True))
            return {
                "type": "string",
                "oneOf": [{"const": value, "title": value[::-1]} for value in values],
            }
        case "multi":
            values = draw(st.lists(_names, min_size=1, max_size=5, unique=True))
            low = draw(st.integers(0, len(values)))
            return {
                "type": "array",
                "items": {"enum": values},
                "minItems": low,
                "uniqueItems": True,
            }
        case _:
            low = draw(st.integers(-5, 5))
            kind = draw(st.sampled_from(["number", "integer"]))
            return {"type": kind, "minimum": low, "maximum": low + draw(_small)}


def _answer(draw: st.DrawFn, field: FormField) -> Any:
    low, high = field.minimum or 0, field.maximum
    match field.kind:
        case FieldKind.BOOLEAN:
            return draw(st.booleans())
        case FieldKind.CHOICE:
            return draw(st.sampled_from(field.options)).value
        case FieldKind.MULTI:
            values = [option.value for option in field.options]
            return draw(st.lists(st.sampled_from(values), min_size=int(low), unique=True))
        case FieldKind.NUMBER | FieldKind.INTEGER:
            return draw(st.integers(int(low), int(high or 0)))
        case _:
            return draw(st.text(min_size=int(low), max_size=int(high or 0)))


@requirement("elicitation.form.types")
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_whatever_a_form_lets_a_person_answer_satisfies_its_schema(data: st.DataObject) -> None:
    properties = data.draw(st.dictionaries(_names, _property(), max_size=5))
    names = sorted(properties)
    required = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    schema = objects(properties, *required)
    form = form_of(schema, message="m", lenient=False)
    if isinstance(form, Unaskable):
        assert "secret" in form.problem
        return

    @st.composite
    def content(draw: st.DrawFn) -> dict[str, Any]:
        asked = [item for item in form.fields if item.required or draw(st.booleans())]
        return {item.name: _answer(draw, item) for item in asked}

    assert valid(schema, data.draw(content()))


_KEYWORDS = [
    *("type", "enum", "enumNames", "oneOf", "const", "title", "items", "minItems", "default"),
    *("minimum", "pattern", "format", "required", "properties", "$ref", "$defs"),
]
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_KEYWORDS),
            inner | st.sampled_from(["string", "array", "integer", "object", "boolean"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@given(
    schema=st.dictionaries(st.sampled_from(["a", "b"]), _json),
    whole=st.dictionaries(st.sampled_from(_KEYWORDS), _json),
)
def test_no_schema_however_odd_breaks_it(
    schema: dict[str, object], whole: dict[str, object]
) -> None:
    for mode in (True, False):
        form_of(objects(schema, "a"), message="m", lenient=mode)
        form_of(whole, message="m", lenient=mode)
