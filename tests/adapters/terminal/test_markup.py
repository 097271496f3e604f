import re

from hypothesis import given
from hypothesis import strategies as st

from adapters.terminal.markup import TerminalRenderer
from gateway.domain.ids import QuestionId
from gateway.domain.question import Action, Button
from gateway.ports import CardView
from tests.support.requirement import requirement

UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def view(text: str, *, reply: str = "", action: Action = Action.ALLOW_ONCE) -> CardView:
    return CardView(
        question=QuestionId("q"),
        short="k7q2",
        title=text,
        text=text,
        lines=(text,),
        buttons=(Button(token="t", action=action, label=text or "x"),),
        reply_token=reply,
        reply_hint=text,
        closed=text,
    )


@requirement("threat.s22")
@given(st.text())
def test_nothing_shown_in_the_terminal_steers_it(text: str) -> None:
    renderer = TerminalRenderer()
    bodies = [part.body for part in renderer.text(text)]
    bodies += [renderer.card(view(text))[0].body, renderer.closed_card(view(text)).body]

    assert not [body for body in bodies if UNSAFE.search(body)]


@given(st.text())
def test_no_visible_character_of_a_reply_is_lost(text: str) -> None:
    shown = "".join(part.body for part in TerminalRenderer().text(text))

    assert [c for c in shown if c.isprintable() and not c.isspace()] == [
        c for c in text if c.isprintable() and not c.isspace()
    ]


@requirement("design.terminal.pipe")
def test_choices_are_numbered_lines() -> None:
    card = view("add a note", action=Action.ALLOW_ONCE)

    assert "\n1) add a note" in TerminalRenderer().card(card)[0].body


def test_a_field_that_takes_text_shows_its_words_instead_of_numbers() -> None:
    body = TerminalRenderer().card(view("Skip", reply="r", action=Action.SKIP))[0].body

    assert "or type: skip" in body
    assert "1)" not in body


def test_an_empty_reply_is_no_message() -> None:
    assert TerminalRenderer().text(" \n") == ()
