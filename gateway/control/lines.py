"""What an attached chat is shown, as lines of JSON: replies, cards, forms, and how they ended."""

from collections.abc import Sequence
from typing import Any

from adapters.terminal.buttons import open_card
from gateway.control.shapes import form_json, question_json
from gateway.domain.delivery import Delivery, DeliveryKind, Mark, Origin
from gateway.domain.question import Question, QuestionState
from gateway.ports import Questions
from gateway.runtime.decisions import Decisions
from gateway.runtime.form_answers import FormAnswers


class Shown:
    """Turns deliveries into lines; cards are read from their question as it is now."""

    def __init__(
        self,
        questions: Questions,
        decisions: Decisions,
        answers: FormAnswers,
        *,
        redact: Sequence[str],
    ) -> None:
        self._questions = questions
        self._decisions = decisions
        self._answers = answers
        self._redact = redact

    async def lines(self, delivery: Delivery) -> list[dict[str, Any]]:
        """Return the lines of one delivery; none for a card that has ended since."""
        match delivery.kind:
            case DeliveryKind.TEXT | DeliveryKind.FILE:
                return [_text(delivery)]
            case DeliveryKind.CARD:
                return await self._card(delivery)
            case DeliveryKind.EDIT:
                return await self._settled(delivery)

    async def _card(self, delivery: Delivery) -> list[dict[str, Any]]:
        question = await self._question(delivery)
        if question is None or question.state is not QuestionState.PENDING:
            return []
        shown = question_json(question, redact=self._redact)
        if question.form is None:
            return [{"type": "card", "question": shown, **_marks(delivery)}]
        state = await self._answers.state_of(question)
        return [
            {
                "type": "form",
                "question": shown,
                "form": form_json(question.form, state),
                "rev": state.rev,
                "field": state.field,
                **_marks(delivery),
            }
        ]

    async def _settled(self, delivery: Delivery) -> list[dict[str, Any]]:
        question = await self._question(delivery)
        if question is None:
            return [{"type": "status", "text": delivery.body, **_marks(delivery)}]
        shown = question_json(question, redact=self._redact)
        return [
            {
                "type": "settled",
                "id": question.id,
                "state": shown["state"],
                "decided_by": shown["decided_by"],
                "decided_via": shown["decided_via"],
                "text": delivery.body,
                **_marks(delivery),
            }
        ]

    async def _question(self, delivery: Delivery) -> Question | None:
        card = open_card(delivery.payload)
        found = None if card is None else await self._questions.find(card.question)
        return self._decisions.named(found) if isinstance(found, Question) else None


def _text(delivery: Delivery) -> dict[str, Any]:
    if delivery.origin is Origin.NOTICE:
        return {"type": "status", "text": delivery.body, **_marks(delivery)}
    return {
        "type": "reply",
        "text": delivery.body,
        "message_id": None if delivery.message is None else str(delivery.message),
        "attachments": [],
        **_marks(delivery),
    }


def _marks(delivery: Delivery) -> dict[str, bool]:
    return {"repeat": True} if Mark.REPEAT in delivery.marks else {}
