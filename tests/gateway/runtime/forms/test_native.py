"""Forms that a platform shows as one native form: what opens it, and what its answers mean."""

from gateway.domain.form import FieldKind, Form, FormField, FormState, Option
from gateway.runtime.forms import moves
from gateway.runtime.forms.moves import Move, NoMove
from gateway.runtime.forms.steps import REVIEW, modal_prompt, wants_modal

FORM = Form(
    message="What shall I write?",
    fields=(
        FormField(name="title", kind=FieldKind.TEXT, label="Title", maximum=9),
        FormField(name="loud", kind=FieldKind.BOOLEAN, label="Loud"),
        FormField(name="tag", kind=FieldKind.TEXT, label="Tag", required=False),
    ),
)
START = {"field": "title", "rev": 0}


def begun() -> FormState:
    return moves.start(FORM)[0]


def test_all_answers_are_taken_at_once_and_an_empty_optional_one_is_left_out() -> None:
    state = begun()

    move = moves.submitted(FORM, state, START, {"title": "milk", "loud": "yes", "tag": ""})

    assert isinstance(move, Move)
    assert move.next == REVIEW
    after = moves.after(state, move)
    assert (after.answers, after.skipped) == ({"title": "milk", "loud": True}, {"tag"})
    assert "Title: milk" in move.prompt.text


def test_a_wrong_answer_is_asked_again_and_the_others_stay() -> None:
    state = begun()

    move = moves.submitted(
        FORM, state, START, {"title": "much too long", "loud": "no", "tag": "blue"}
    )

    assert isinstance(move, Move)
    after = moves.after(state, move)
    assert (after.field, after.answers) == ("title", {"loud": False, "tag": "blue"})
    assert move.prompt.problem.startswith("Title: It may have at most 9 characters")


def test_answers_to_an_older_form_change_nothing() -> None:
    older = {"field": "title", "rev": 3}

    outcome = moves.submitted(FORM, begun(), older, {"title": "milk", "loud": "no", "tag": ""})

    assert isinstance(outcome, NoMove)


def test_a_native_form_opens_from_a_card_that_says_what_it_asks() -> None:
    _, prompt = moves.start(FORM)

    shown = modal_prompt(FORM, prompt)

    assert wants_modal(FORM, prompt)
    assert [choice.label for choice in shown.choices] == ["Answer", "Decline", "Cancel"]
    assert shown.text == "What shall I write?\n\nTitle\nLoud\nTag (optional)"
    assert shown.choices[0].argument == START


def test_one_question_that_a_press_answers_needs_no_native_form() -> None:
    size = FormField(
        name="size",
        kind=FieldKind.CHOICE,
        label="Size",
        options=(Option(value="s", label="Small"), Option(value="l", label="Large")),
    )
    form = Form(message="Which?", fields=(size,))

    assert not wants_modal(form, moves.start(form)[1])
