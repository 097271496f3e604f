import pytest

from adapters.terminal.buttons import NotUnderstood, OpenCard
from adapters.terminal.ids import PERSON, PLACE
from adapters.terminal.inbound import Line, event_of
from gateway.domain.message import ButtonPressed, CommandGiven, FormSubmitted, InboundMessage
from gateway.domain.question import Action, Button
from tests.support.clock import NOON

CARD = OpenCard(
    question="q",
    buttons=(Button(token="t1", action=Action.ALLOW_ONCE, label="Allow once"),),
    field="",
    reply_token="",
)
FIELD = OpenCard(question="q", buttons=(), field="day", reply_token="r")


def line(text: str) -> Line:
    return Line(text=text, native_id="run:1", at=NOON)


def test_plain_text_is_a_message_of_the_local_person() -> None:
    event = event_of(line("  hello "), None)

    assert isinstance(event, InboundMessage)
    assert (event.text, event.sender, event.place) == ("  hello ", PERSON, PLACE)
    assert event.dedupe == "terminal::run:1"


@pytest.mark.parametrize("shown", [None, CARD, FIELD])
def test_a_slash_command_is_one_whatever_is_open(shown: OpenCard | None) -> None:
    event = event_of(line("/Reload_MCP notes "), shown)

    assert isinstance(event, CommandGiven)
    assert (event.name, event.argument) == ("reload-mcp", "notes")


def test_a_number_presses_the_button_of_the_open_card() -> None:
    event = event_of(line("1"), CARD)

    assert isinstance(event, ButtonPressed)
    assert event.token == "t1"


def test_typed_text_answers_the_open_field() -> None:
    event = event_of(line("2026-12-01"), FIELD)

    assert isinstance(event, FormSubmitted)
    assert event.values == {"day": "2026-12-01"}


def test_a_line_that_fits_no_button_is_explained_and_sends_nothing() -> None:
    assert isinstance(event_of(line("perhaps"), CARD), NotUnderstood)


@pytest.mark.parametrize("shown", [None, CARD, FIELD])
def test_a_blank_line_is_nothing_whatever_is_open(shown: OpenCard | None) -> None:
    assert event_of(line("   "), shown) is None
