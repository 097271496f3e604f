"""The cards of an attached chat: drawn from the API's lines, and what a press or a typed answer asks of it.

Turning a page and ticking options stay here; whatever counts becomes a request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from adapters.terminal.markup import TerminalRenderer
from gateway.control.shapes import form_from_json, question_from_json
from gateway.domain.delivery import Delivery, DeliveryKind, Part
from gateway.domain.form import Form, FormState
from gateway.domain.ids import DeliveryId, Place
from gateway.domain.question import Action, Button, Question, QuestionKind
from gateway.ports import CardView, Clock
from gateway.runtime.cards import approval_prompt
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.drawing import draw
from gateway.runtime.forms import moves, steps
from gateway.runtime.forms.moves import Finish, Move, NoMove, read_argument
from gateway.runtime.forms.steps import Prompt

_AS_IT_CAME: Final = ApprovalsConfig(redact=())
"""What is to be hidden was hidden before it got here."""

_ENDING: Final = frozenset({Action.DECLINE, Action.CANCEL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Decide a question."""

    question: str
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerStep:
    """Take a step of a form: a body of `POST /v1/answers`."""

    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrawn:
    """Nothing leaves; the card looks different now."""

    card: Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Nothing happens; this is why."""

    text: str


Wish: TypeAlias = Decision | AnswerStep | Redrawn | Said


@dataclass(frozen=True, slots=True, kw_only=True)
class _Card:
    """An open card; `state` may be ahead of the gateway's `rev` by what was only ticked here."""

    question: Question
    rev: int = 0
    state: FormState = moves.NO_STATE

    @property
    def form(self) -> Form:
        return self.question.form or Form(message="")

    @property
    def pick(self) -> bool:
        return self.question.kind is QuestionKind.CHOICE


class Cards:
    """The cards that are open, and the buttons they were drawn with."""

    def __init__(self, place: Place, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._renderer = TerminalRenderer()
        self._cards: dict[str, _Card] = {}
        self._buttons: dict[str, tuple[str, Button]] = {}
        self._shown = 0

    @property
    def any_open(self) -> bool:
        """Whether a card waits for an answer."""
        return bool(self._cards)

    def open(self, line: Mapping[str, Any]) -> Delivery:
        """Return the card of a `card` or `form` line."""
        if line["type"] == "card":
            question = question_from_json(line["question"])
            prompt = approval_prompt(question.body, question.actions)
            return self._draw(_Card(question=question), prompt)
        form, state = form_from_json(line["form"], rev=line["rev"], field=line["field"])
        card = _Card(
            question=question_from_json(line["question"], form=form), rev=line["rev"], state=state
        )
        prompt = steps.pick_prompt(form, state) if card.pick else moves.prompt_of(form, state)
        if card.question.kind is QuestionKind.URL:
            prompt = steps.as_link(prompt)
        return self._draw(card, prompt)

    def close(self, line: Mapping[str, Any]) -> Delivery:
        """Return what is shown of a `settled` line."""
        card = self._cards.pop(line["id"], None)
        if card is None:
            return self.text(line["text"])
        self._forget(line["id"])
        view = _closed(card.question)
        return self._delivery(replace(self._renderer.closed_card(view), body=line["text"]))

    def text(self, text: str) -> Delivery:
        """Return a text to be shown."""
        return self._delivery(Part(kind=DeliveryKind.TEXT, body=text))

    def press(self, token: str) -> Wish:
        """Say what a press asks for."""
        found = self._buttons.get(token)
        if found is None:
            return Said(text="That card is closed.")
        card, button = self._cards[found[0]], found[1]
        if card.question.form is None:
            return Decision(question=card.question.id, action=button.action)
        if button.action in _ENDING:
            return AnswerStep(body={"id": card.question.id, "action": button.action.value})
        outcome = moves.press(card.form, card.state, button, pick=card.pick)
        match outcome:
            case NoMove():
                return Said(text=outcome.reason)
            case Finish():
                return AnswerStep(body=_submit(card, outcome))
            case Move():
                return self._move(card, outcome)

    def typed(self, token: str, values: Mapping[str, str | Sequence[str]]) -> Wish:
        """Say what a typed answer asks for."""
        found = self._buttons.get(token)
        if found is None:
            return Said(text="That card is closed.")
        card, button = self._cards[found[0]], found[1]
        text = values.get(card.state.field, "")
        outcome = moves.typed(card.form, card.state, read_argument(button.argument), text)
        if isinstance(outcome, Move):
            return self._move(card, outcome)
        return Said(text=outcome.reason if isinstance(outcome, NoMove) else "")

    def _move(self, card: _Card, move: Move) -> Wish:
        stays = move.next == move.field and not move.skip
        if stays or (move.keep and move.next == card.state.field):
            ahead = replace(card, state=moves.after(card.state, move))
            return Redrawn(card=self._draw(ahead, move.prompt))
        body: dict[str, Any] = {"id": card.question.id, "rev": card.rev}
        if move.keep:
            return AnswerStep(body={**body, "action": "edit", "field": move.next})
        if move.skip:
            return AnswerStep(body={**body, "field": move.field, "skip": True})
        return AnswerStep(body={**body, "field": move.field, "value": move.value})

    def _draw(self, card: _Card, prompt: Prompt) -> Delivery:
        question = card.question
        self._forget(question.id)
        drawn = draw(
            question,
            prompt,
            renderer=self._renderer,
            now=self._clock.now(),
            config=_AS_IT_CAME,
        )
        self._cards[question.id] = card
        self._buttons |= {item.token: (question.id, item) for item in drawn.buttons}
        return self._delivery(drawn.card)

    def _forget(self, question: str) -> None:
        gone = [token for token, (owner, _) in self._buttons.items() if owner == question]
        for token in gone:
            del self._buttons[token]

    def _delivery(self, part: Part) -> Delivery:
        self._shown += 1
        return Delivery(
            id=DeliveryId(self._shown),
            place=self._place,
            kind=part.kind,
            body=part.body,
            payload=part.payload,
            key=str(self._shown),
            attempt=1,
        )


def _submit(card: _Card, outcome: Finish) -> dict[str, Any]:
    body: dict[str, Any] = {"id": card.question.id, "action": "submit"}
    if card.pick:
        return {**body, "answers": dict(outcome.content)}
    return {**body, "rev": card.rev}


def _closed(question: Question) -> CardView:
    return CardView(question=question.id, short=question.short, title="", text="", closed="-")
