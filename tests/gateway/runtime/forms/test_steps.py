"""A form walked by its own buttons and typed answers, as a person would; no store."""

import dataclasses
import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, cast

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.canonical import canonical
from gateway.domain.form import FieldKind, Form, FormField, FormState, Option
from gateway.domain.question import Action, Button
from gateway.domain.schema_form import form_of
from gateway.runtime.forms import moves, steps
from gateway.runtime.forms.moves import Finish, Move, NoMove, Outcome
from gateway.runtime.forms.steps import Choice, Prompt
from tests.support.requirement import requirement


@dataclasses.dataclass
class Walk:
    """A form, how far it is, and the card that is open."""

    form: Form
    state: FormState
    prompt: Prompt
    pick: bool = False

    @classmethod
    def of(cls, form: Form) -> "Walk":
        state, prompt = moves.start(form)
        return cls(form, state, prompt)

    @property
    def labels(self) -> list[str]:
        return [choice.label for choice in self.prompt.choices]

    def choice(self, label: str) -> Choice:
        return next(choice for choice in self.prompt.choices if choice.label == label)

    def press(self, label: str | Choice) -> Outcome:
        choice = self.choice(label) if isinstance(label, str) else label
        argument = canonical(dict(choice.argument))
        button = Button(token="t", action=choice.action, label="", argument=argument)
        return self._go(moves.press(self.form, self.state, button, pick=self.pick))

    def type(self, text: str) -> Outcome:
        assert self.prompt.reply is not None
        return self._go(moves.typed(self.form, self.state, self.prompt.reply, text))

    def submit(self) -> Mapping[str, object]:
        outcome = self.press("Submit")
        assert isinstance(outcome, Finish)
        return outcome.content

    def _go(self, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Move):
            # What the store keeps is JSON.
            state = moves.after(self.state, outcome)
            answers = cast("dict[str, object]", json.loads(canonical(dict(state.answers))))
            self.state = dataclasses.replace(state, answers=answers)
            self.prompt = outcome.prompt
        return outcome


def field(name: str, kind: FieldKind = FieldKind.TEXT, **more: Any) -> FormField:
    return FormField(name=name, kind=kind, label=name.capitalize(), **more)


OPTIONS = tuple(Option(value=f"c{n}", label=f"Option {n}") for n in range(1, 21))


def test_a_form_goes_field_by_field_to_its_review_and_out() -> None:
    walk = Walk.of(
        Form(
            message="Please",
            fields=(
                field("when", FieldKind.DATE),
                field("colour", FieldKind.CHOICE, options=OPTIONS[:2]),
                field("loud", FieldKind.BOOLEAN),
            ),
        )
    )
    walk.type("2026-03-31")
    walk.press("Option 2")
    walk.press("No")
    assert "When: 2026-03-31\nColour: Option 2\nLoud: No" in walk.prompt.text
    assert walk.submit() == {"when": "2026-03-31", "colour": "c2", "loud": False}


def test_an_invalid_answer_is_explained_and_the_same_field_asked_again() -> None:
    walk = Walk.of(Form(message="", fields=(field("n", FieldKind.INTEGER),)))
    walk.type("many")
    assert "That is not a whole number" in walk.prompt.text
    assert walk.prompt.field == "n"
    walk.type("3")
    assert walk.submit() == {"n": 3}


def test_an_optional_field_that_is_skipped_is_absent() -> None:
    walk = Walk.of(Form(message="", fields=(field("a", required=False), field("b"))))
    walk.press("Skip")
    walk.type("x")
    assert "A: (left out)" in walk.prompt.text
    assert walk.submit() == {"b": "x"}


def test_a_required_field_offers_no_skip_and_takes_none() -> None:
    walk = Walk.of(Form(message="", fields=(field("a"),)))
    assert "Skip" not in walk.labels
    skip = Choice(action=Action.SKIP, label="", argument={"field": "a", "rev": 0})
    assert isinstance(walk.press(skip), NoMove)


def test_a_default_is_used_only_when_it_is_pressed() -> None:
    walk = Walk.of(Form(message="", fields=(field("a", default="x"), field("b", default=""))))
    walk.press("Use default: x")
    walk.type("own")
    assert walk.submit() == {"a": "x", "b": "own"}


def test_the_default_of_a_typed_field_cannot_be_hit_by_a_typed_number() -> None:
    walk = Walk.of(Form(message="", fields=(field("n", FieldKind.INTEGER, default=5),)))
    actions = {choice.action for choice in walk.prompt.choices}
    assert not actions & {Action.PICK, Action.TOGGLE, Action.SUBMIT, Action.EDIT}


def test_editing_one_field_keeps_the_others() -> None:
    walk = Walk.of(Form(message="", fields=(field("a"), field("b"))))
    walk.type("1")
    walk.type("2")
    walk.press("Edit")
    assert walk.labels == ["A", "B", "Back"]
    walk.press("A")
    assert "Now: 1" in walk.prompt.text
    walk.type("9")
    assert walk.submit() == {"a": "9", "b": "2"}


def test_editing_may_be_given_up() -> None:
    walk = Walk.of(Form(message="", fields=(field("a"), field("b"))))
    walk.type("1")
    walk.type("2")
    walk.press("Edit")
    walk.press("Back")
    walk.press("Edit")
    walk.press("B")
    walk.press("Keep it")
    assert walk.submit() == {"a": "1", "b": "2"}


def test_an_older_card_does_nothing() -> None:
    walk = Walk.of(Form(message="", fields=(field("c", FieldKind.CHOICE, options=OPTIONS[:2]),)))
    first = walk.choice("Option 1")
    walk.press("Option 2")
    assert isinstance(walk.press(first), NoMove)
    assert walk.submit() == {"c": "c2"}


def test_a_review_that_was_edited_meanwhile_cannot_be_submitted() -> None:
    walk = Walk.of(Form(message="", fields=(field("a"),)))
    walk.type("1")
    submit = walk.choice("Submit")
    walk.press("Edit")
    walk.type("2")
    assert isinstance(walk.press(submit), NoMove)


def test_more_than_eight_options_come_in_pages() -> None:
    walk = Walk.of(Form(message="", fields=(field("c", FieldKind.CHOICE, options=OPTIONS),)))
    assert [label for label in walk.labels if label.startswith("Option")] == [
        f"Option {n}" for n in range(1, 9)
    ]
    walk.press("More (page 1 of 3)")
    walk.press("More (page 2 of 3)")
    walk.press("Option 19")
    assert walk.submit() == {"c": "c19"}


def test_options_are_toggled_over_pages_and_come_in_the_forms_order() -> None:
    walk = Walk.of(
        Form(message="", fields=(field("c", FieldKind.MULTI, options=OPTIONS, minimum=2),))
    )
    walk.press("More (page 1 of 3)")
    walk.press("[ ] Option 10")
    assert "[x] Option 10" in walk.labels
    walk.press("Done")
    assert "at least 2" in walk.prompt.text
    walk.press("[ ] Option 1")
    walk.press("[ ] Option 2")
    walk.press("[x] Option 2")
    walk.press("Done")
    assert walk.submit() == {"c": ["c1", "c10"]}


def test_options_typed_by_number_mean_the_page_that_is_shown() -> None:
    walk = Walk.of(Form(message="", fields=(field("c", FieldKind.MULTI, options=OPTIONS),)))
    walk.press("[ ] Option 3")
    walk.press("More (page 1 of 3)")
    walk.type("1,2")
    assert walk.submit() == {"c": ["c3", "c9", "c10"]}


def test_a_confirmation_is_its_own_review() -> None:
    walk = Walk.of(Form(message="Really?"))
    assert walk.labels == ["Submit", "Decline", "Cancel"]
    assert walk.submit() == {}


def test_a_whole_value_is_asked_as_one_json_object() -> None:
    form = form_of({"type": "object", "additionalProperties": True}, message="", lenient=True)
    assert isinstance(form, Form)
    walk = Walk.of(form)
    walk.type("[1]")
    assert "object" in walk.prompt.text
    assert walk.prompt.reply is not None
    walk.type('{"a": {"b": 1}}')
    assert walk.submit() == {"": {"a": {"b": 1}}}


def test_constants_that_python_confuses_stay_apart() -> None:
    options = (Option(value=1, label="One"), Option(value=True, label="True"))
    walk = Walk.of(Form(message="", fields=(field("c", FieldKind.MULTI, options=options),)))
    walk.press("[ ] True")
    assert walk.labels[:2] == ["[ ] One", "[x] True"]


def test_a_plain_choice_ends_with_a_press() -> None:
    form = Form(message="Which?", fields=(field("choice", FieldKind.CHOICE, options=OPTIONS),))
    state, _ = moves.start(form)
    walk = Walk(form, state, steps.pick_prompt(form, state), pick=True)
    walk.press("More (page 1 of 3)")
    assert walk.press("Option 9") == Finish(content={"choice": "c9"})


# --- every form type --------------------------------------------------------------

LABELS = st.text(st.characters(categories=["Lu", "Ll", "Nd"]), min_size=1, max_size=8)


@st.composite
def properties(draw: st.DrawFn) -> dict[str, object]:
    kind = draw(
        st.sampled_from(
            [
                "boolean",
                "enum",
                "oneOf",
                "multi",
                "text",
                "number",
                "integer",
                "pattern",
                "email",
                "uri",
                "date",
                "date-time",
            ]
        )
    )
    titles = draw(st.lists(LABELS, min_size=1, max_size=12, unique=True))
    match kind:
        case "boolean":
            return {"type": "boolean", "default": draw(st.booleans())}
        case "enum":
            names = [f"Title {title}" for title in titles]
            return {"type": "string", "enum": titles, "enumNames": names}
        case "oneOf":
            return {
                "type": "string",
                "oneOf": [{"const": f"v{title}", "title": title} for title in titles],
            }
        case "multi":
            low = draw(st.integers(0, len(titles)))
            high = draw(st.integers(low, len(titles)))
            items = {"type": "string", "enum": titles}
            return {"type": "array", "items": items, "minItems": low, "maxItems": max(high, 1)}
        case "text":
            return {"type": "string", "minLength": draw(st.integers(0, 5)), "maxLength": 9}
        case "pattern":
            return {"type": "string", "pattern": "^[a-f]{2,4}$", "maxLength": 9}
        case "number" | "integer":
            low = draw(st.integers(-50, 50))
            return {"type": kind, "minimum": low, "maximum": low + draw(st.integers(0, 9))}
        case _:
            return {"type": "string", "format": kind}


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, object]:
    found = draw(st.dictionaries(LABELS, properties(), max_size=4))
    required = [name for name in found if draw(st.booleans())]
    return {"type": "object", "properties": found, "required": required}


TYPED: dict[FieldKind, list[str]] = {
    FieldKind.TEXT: ["", "abcde", "abc", "abcdefghij", "a,b"],
    FieldKind.EMAIL: ["ana@example.com", "ana"],
    FieldKind.URI: ["https://example.com/x", "x y", "example"],
    FieldKind.DATE: ["2026-02-28", "2026-02-30", "28.2.2026"],
    FieldKind.DATE_TIME: ["2026-02-28 10:00Z", "2026-02-28T10:00:00+02:00", "2026-02-28T10:00"],
    FieldKind.NUMBER: ["0.5", "1,5", *map(str, range(-50, 60))],
    FieldKind.INTEGER: ["0.5", *map(str, range(-50, 60))],
    FieldKind.MULTI: ["1", "1,2", "9", "Done"],
}


@requirement("elicitation.form.types")
def test_each_type_answered_rightly_is_exactly_what_the_schema_wants() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "yes": {"type": "boolean"},
            "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
            "kind": {"type": "string", "oneOf": [{"const": "k1", "title": "Kind one"}]},
            "tags": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string", "enum": ["a", "b"]},
            },
            "name": {"type": "string", "minLength": 2},
            "mail": {"type": "string", "format": "email"},
            "page": {"type": "string", "format": "uri"},
            "day": {"type": "string", "format": "date"},
            "at": {"type": "string", "format": "date-time"},
            "share": {"type": "number", "minimum": 0, "maximum": 1},
            "count": {"type": "integer", "default": 3},
            "note": {"type": "string"},
        },
        "required": ["yes", "size", "kind", "tags", "name", "mail", "page", "day", "at", "share"],
    }
    form = form_of(schema, message="", lenient=False)
    assert isinstance(form, Form)
    walk = Walk.of(form)
    for label in ("Yes", "Large", "Kind one", "[ ] b", "Done"):
        walk.press(label)
    for text in ("Ana", "ana@example.com", "https://example.com", "2026-03-31"):
        walk.type(text)
    walk.type("2026-03-31 14:30+02:00")
    walk.type("0.25")
    walk.press("Use default: 3")
    walk.press("Skip")
    content = walk.submit()
    _check(schema, content)
    assert content == {
        "yes": True,
        "size": "l",
        "kind": "k1",
        "tags": ["b"],
        "name": "Ana",
        "mail": "ana@example.com",
        "page": "https://example.com",
        "day": "2026-03-31",
        "at": "2026-03-31T14:30:00+02:00",
        "share": 0.25,
        "count": 3,
    }


@requirement("elicitation.form.types")
@settings(max_examples=150, deadline=None)
@given(schema=schemas(), data=st.data())
def test_every_way_through_every_form_gives_schema_valid_content(
    schema: dict[str, object], data: st.DataObject
) -> None:
    form = form_of(schema, message="Please", lenient=False)
    assert isinstance(form, Form)
    walk = Walk.of(form)
    for _ in range(80):
        step = data.draw(st.sampled_from(_ways(walk)))
        outcome = walk.type(step) if isinstance(step, str) else walk.press(step)
        if isinstance(outcome, Finish):
            _check(schema, outcome.content)
            return


def _ways(walk: Walk) -> list[Choice | str]:
    """Every button that leads on, and typed answers; mostly forward, so that forms end."""
    buttons = [
        choice
        for choice in walk.prompt.choices
        if choice.action not in {Action.DECLINE, Action.CANCEL}
    ]
    submit = [choice for choice in buttons if choice.action is Action.SUBMIT]
    typed = TYPED.get(_asked(walk).kind, []) if walk.prompt.reply is not None else []
    return [*buttons, *submit * 3, *typed]


def _asked(walk: Walk) -> FormField:
    found = steps.find_asked(walk.form, walk.state.field)
    assert found is not None
    return found


def _check(schema: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    assert not list(cast("Any", jsonschema.Draft202012Validator)(schema).iter_errors(content))
    for name, value in content.items():
        assert value is not None
        match schema["properties"][name].get("format"):
            case "email":
                assert re.fullmatch(r"[^@\s]+@[^@\s]+", value)
            case "date":
                assert date.fromisoformat(value)
            case "date-time":
                assert datetime.fromisoformat(value).tzinfo is not None
            case "uri":
                assert re.match(r"[a-z]+:", value)
            case _:
                pass
