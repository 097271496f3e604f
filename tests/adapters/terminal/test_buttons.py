import pytest

from adapters.terminal.buttons import (
    Answer,
    NotUnderstood,
    OpenCard,
    Press,
    Typed,
    answer_of,
    open_card,
    payload_of,
)
from gateway.domain.ids import QuestionId
from gateway.domain.question import Action, Button
from gateway.ports import CardView
from tests.support.requirement import requirement


def card(*buttons: tuple[Action, str], reply: str = "") -> OpenCard:
    made = tuple(
        Button(token=f"t{n}", action=action, label=label)
        for n, (action, label) in enumerate(buttons, start=1)
    )
    return OpenCard(question="q", buttons=made, field="day", reply_token=reply)


APPROVAL = card((Action.ALLOW_ONCE, "Allow once"), (Action.DENY, "Deny"))
CHOICE = card((Action.PICK, "Café"), (Action.PICK, "2"), (Action.CANCEL, "Cancel"))
TYPED = card((Action.SKIP, "Skip"), (Action.CANCEL, "Cancel"), reply="r")


@requirement("design.terminal.pipe")
@pytest.mark.parametrize(
    ("line", "shown", "answer"),
    [
        ("1", APPROVAL, Press(token="t1")),
        (" 2 ", APPROVAL, Press(token="t2")),
        ("deny", APPROVAL, Press(token="t2")),
        ("ALLOW ONCE", APPROVAL, Press(token="t1")),
        ("CAFÉ", CHOICE, Press(token="t1")),
        ("3", CHOICE, Press(token="t3")),
        ("1", TYPED, Typed(token="r", field="day", values="1")),
        ("skip", TYPED, Press(token="t1")),
        ("\\skip", TYPED, Typed(token="r", field="day", values="skip")),
        ("", TYPED, Typed(token="r", field="day", values="")),
    ],
)
def test_a_line_answers_the_open_card_by_number_by_label_or_as_text(
    line: str, shown: OpenCard, answer: Answer
) -> None:
    assert answer_of(line, shown) == answer


def test_a_label_wins_over_a_number_that_reads_the_same() -> None:
    assert answer_of("2", CHOICE) == Press(token="t2")


@pytest.mark.parametrize("line", ["0", "3", "-1", "yes", "", "1 2", "²"])
def test_a_line_that_answers_nothing_presses_nothing_and_says_what_would(line: str) -> None:
    answer = answer_of(line, APPROVAL)

    assert isinstance(answer, NotUnderstood)
    assert "1 to 2" in answer.hint


def test_a_card_can_be_opened_again_from_the_payload_of_its_delivery() -> None:
    view = CardView(
        question=QuestionId("q"),
        short="q",
        title="",
        text="",
        buttons=APPROVAL.buttons,
        field="day",
        reply_token="r",
    )

    opened = open_card(payload_of(view))

    assert opened == OpenCard(question="q", buttons=APPROVAL.buttons, field="day", reply_token="r")
    assert open_card("{}") is None
