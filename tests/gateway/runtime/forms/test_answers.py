import pytest

from gateway.domain.form import FieldKind, FormField, Option
from gateway.runtime.forms.answers import (
    Invalid,
    Valid,
    find_option,
    read_list,
    read_several,
    read_text,
)
from gateway.runtime.forms.subschema import schema_problem

COLOURS = (
    Option(value="r", label="Red"),
    Option(value="g", label="Green, dark"),
    Option(value="b", label="Blue"),
)


def field(kind: FieldKind, **more: object) -> FormField:
    return FormField(name="f", kind=kind, label="F", **more)  # pyright: ignore[reportArgumentType]


GOOD: list[tuple[FormField, str, object]] = [
    (field(FieldKind.BOOLEAN), "Yes", True),
    (field(FieldKind.BOOLEAN), "false", False),
    (field(FieldKind.CHOICE, options=COLOURS), "red", "r"),
    (field(FieldKind.CHOICE, options=COLOURS), "g", "g"),
    (field(FieldKind.CHOICE, options=COLOURS), "3", "b"),
    (field(FieldKind.CHOICE, options=(Option(value=True, label="On"),)), "true", True),
    (field(FieldKind.MULTI, options=COLOURS), "3,1", ["r", "b"]),
    (field(FieldKind.MULTI, options=COLOURS), "Green, dark", ["g"]),
    (field(FieldKind.TEXT), "as it is ", "as it is "),
    (field(FieldKind.TEXT, pattern="^[a-z]+$", maximum=5), "abc", "abc"),
    (field(FieldKind.EMAIL), " ana@example.com ", "ana@example.com"),
    (field(FieldKind.URI), "mailto:a@b.org", "mailto:a@b.org"),
    (field(FieldKind.URI), "https://example.com/a?b=%20#c", "https://example.com/a?b=%20#c"),
    (field(FieldKind.DATE), "2028-02-29", "2028-02-29"),
    (field(FieldKind.DATE_TIME), "2026-03-31 14:30+02:00", "2026-03-31T14:30:00+02:00"),
    (field(FieldKind.DATE_TIME), "2026-03-31t14:30:00.5z", "2026-03-31T14:30:00.5Z"),
    (field(FieldKind.NUMBER), "0.5", 0.5),
    (field(FieldKind.NUMBER), "-3", -3),
    (field(FieldKind.INTEGER, minimum=2, maximum=2**60), "1152921504606846975", 2**60 - 1),
    (field(FieldKind.JSON), '{"a": [1]}', {"a": [1]}),
]

BAD: list[tuple[FormField, str, str]] = [
    (field(FieldKind.TEXT), "   ", "Nothing was entered"),
    (field(FieldKind.TEXT), "\ud800", "cannot be sent"),
    (field(FieldKind.BOOLEAN), "maybe", "yes or no"),
    (field(FieldKind.CHOICE, options=COLOURS), "4", "none of the 3"),
    (field(FieldKind.CHOICE, options=COLOURS), "0", "none of the 3"),
    (field(FieldKind.MULTI, options=COLOURS, minimum=2), "1", "at least 2"),
    (field(FieldKind.MULTI, options=COLOURS, maximum=1), "1,2", "at most 1"),
    (field(FieldKind.TEXT, minimum=3), "ab", "at least 3"),
    (field(FieldKind.TEXT, maximum=3), "abcd", "at most 3"),
    (field(FieldKind.TEXT, pattern="^[a-z]+$"), "ABC", "pattern"),
    (field(FieldKind.TEXT, pattern="("), "ABC", "cannot be checked"),
    (field(FieldKind.TEXT, pattern="a"), "a" * 2001, "at most 2000"),
    (field(FieldKind.EMAIL), "ana example.com", "e-mail"),
    (field(FieldKind.URI), "example.com", "full address"),
    (field(FieldKind.URI), "https:///x", "no host"),
    (field(FieldKind.URI), "javascript:%zz", "full address"),
    (field(FieldKind.DATE), "31.03.2026", "YYYY-MM-DD"),
    (field(FieldKind.DATE), "2026-02-30", "calendar"),
    (field(FieldKind.DATE_TIME), "2026-03-31T14:30:00", "time zone"),
    (field(FieldKind.DATE_TIME), "2026-03-31T25:30:00Z", "no such time"),
    (field(FieldKind.DATE_TIME), "tomorrow", "offset"),
    (field(FieldKind.NUMBER), "1,5", '"."'),
    (field(FieldKind.NUMBER), "1e5", "not a number"),
    (field(FieldKind.NUMBER), "NaN", "not a number"),
    (field(FieldKind.NUMBER), "\u0661", "not a number"),
    (field(FieldKind.NUMBER, minimum=0.5), "0.25", "at least 0.5"),
    (field(FieldKind.INTEGER), "1.0", "whole number"),
    (field(FieldKind.INTEGER, maximum=10.0), "11", "at most 10."),
    (field(FieldKind.INTEGER), "9" * 301, "whole number"),
    (field(FieldKind.JSON), "{a: 1}", "not JSON"),
    (field(FieldKind.JSON), '{"a":1,"a":2}', "duplicate key"),
    (field(FieldKind.JSON, schema={"type": "array"}), "{}", "does not fit"),
]


@pytest.mark.parametrize(("asked", "text", "value"), GOOD)
def test_what_reads_as_a_value_becomes_it(asked: FormField, text: str, value: object) -> None:
    read = read_text(asked, text)
    assert read == Valid(value=value)
    assert isinstance(read, Valid)
    assert type(read.value) is type(value)


@pytest.mark.parametrize(("asked", "text", "part"), BAD)
def test_what_does_not_read_as_a_value_is_explained(asked: FormField, text: str, part: str) -> None:
    read = read_text(asked, text)
    assert isinstance(read, Invalid)
    assert part in read.reason


def test_a_label_wins_over_a_number() -> None:
    options = (Option(value="two", label="2"), Option(value="one", label="1"))
    assert find_option(options, "1", shown=range(2)) == 1


def test_a_number_wins_over_a_constant_nobody_sees() -> None:
    options = (Option(value="2", label="A"), Option(value="1", label="B"))
    assert find_option(options, "1", shown=range(2)) == 0
    assert find_option(options, "1") == 1


def test_a_label_of_two_cases_needs_the_exact_one() -> None:
    options = (Option(value=1, label="ab"), Option(value=2, label="AB"))
    assert find_option(options, "AB", shown=range(2)) == 1
    assert find_option(options, "Ab", shown=range(2)) is None


def test_numbers_of_a_page_mean_what_the_page_shows() -> None:
    options = tuple(Option(value=n, label=f"option {n}") for n in range(20))
    asked = field(FieldKind.MULTI, options=options)
    read = read_list(asked, "1,2", shown=range(8, 16), besides=[0])
    assert read == Valid(value=[0, 8, 9])


def test_a_native_form_selects_by_constant_and_keeps_the_forms_order() -> None:
    asked = field(FieldKind.MULTI, options=COLOURS)
    assert read_several(asked, ["b", "r", "b"]) == Valid(value=["r", "b"])
    assert isinstance(read_several(field(FieldKind.TEXT), ["a", "b"]), Invalid)


def test_a_subschema_that_cannot_be_applied_blocks_no_answer() -> None:
    assert schema_problem({"$ref": "http://169.254.169.254/latest"}, 1) == ""
    assert schema_problem({"type": "zork"}, 1) == ""
    assert schema_problem({"type": "string", "pattern": "(a+)+$"}, "a" * 60 + "!") == ""


def test_a_subschema_says_where_the_value_does_not_fit() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}}
    assert "at ['a']" in schema_problem(schema, {"a": "y"})
