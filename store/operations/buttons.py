"""Button tokens: what they mean, and that one was used."""

from collections.abc import Sequence

from gateway.domain.ids import QuestionId
from gateway.domain.question import Button
from store.codec import storable
from store.sql import questions as sql
from store.work import Work


def add_buttons(work: Work, question: QuestionId, buttons: Sequence[Button]) -> None:
    """Give tokens their meaning."""
    for button in buttons:
        work.run(
            sql.BUTTON,
            {
                "token": button.token,
                "question": question,
                "action": button.action.value,
                "argument": storable(button.argument),
                "now": work.now,
            },
        )


def press(work: Work, question: QuestionId, token: str, *, actor: str) -> None:
    """Mark a button as used by a press that took effect."""
    values = {"token": token, "question": question, "actor": storable(actor), "now": work.now}
    work.run(sql.PRESS, values)
