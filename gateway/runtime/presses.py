"""What a press or a typed answer does to a question: decides it, moves its form, or is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.domain.form import Form, FormState
from gateway.domain.ids import Actor, InboundId, Place
from gateway.domain.message import ButtonPressed, FormSubmitted
from gateway.domain.operations.questions import Ruling, Stale, Why
from gateway.domain.question import Action, Button, Question, QuestionKind, QuestionState, Surface
from gateway.ports import Clock, Questions, QuestionStore, Renderer
from gateway.runtime.cards import no_answer
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.decisions import Decisions, late, refusal
from gateway.runtime.form_steps import FormSteps
from gateway.runtime.forms import moves
from gateway.runtime.forms.moves import NO_STATE, Finish, Move, NoMove, read_argument
from gateway.runtime.wakeups import Wakeups

UNKNOWN: Final = "That button is not known any more."
ELSEWHERE: Final = "That button belongs to another chat."
OLDER: Final = "That card is older; please use the newest one of this question."
_ENDING: Final = frozenset({Action.DECLINE, Action.CANCEL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What the person is told, "" for nothing; `ruling` when somebody tried to decide."""

    text: str
    ruling: Ruling | None = None


class Presses:
    """Judges one press at a time; the row settles who was first."""

    def __init__(
        self,
        store: QuestionStore,
        questions: Questions,
        renderers: Mapping[str, Renderer],
        decisions: Decisions,
        wakeups: Wakeups,
        clock: Clock,
        config: ApprovalsConfig,
    ) -> None:
        self._store = store
        self._questions = questions
        self._decisions = decisions
        self._clock = clock
        self._steps = FormSteps(store, renderers, wakeups, clock, config)

    async def press(self, event: ButtonPressed, *, inbound: InboundId) -> Answered:
        """Do what a button means for whoever pressed it."""
        found = await self._by_token(event.token)
        if found is None:
            return Answered(text=UNKNOWN)
        question, button = found
        refused = await self._refused(question, button.action, event.sender, event.place)
        if refused is not None:
            return refused
        if question.form is None or button.action in _ENDING:
            return await self._decide(question, button, event.sender)
        closed = await self._closed(question, button.action, event.sender)
        if closed is not None:
            return closed
        return await self._form_press(question, question.form, button, event.sender, inbound)

    async def submit(self, event: FormSubmitted) -> Answered:
        """Take typed answers to a form, field by field as far as they were given."""
        found = await self._by_token(event.token)
        if found is None:
            return Answered(text=UNKNOWN)
        question, button = found
        refused = await self._refused(question, Action.ANSWER, event.sender, event.place)
        if refused is not None:
            return refused
        closed = await self._closed(question, Action.ANSWER, event.sender)
        if closed is not None:
            return closed
        state = await self._questions.form_state(question.id)
        if question.form is None or state is None or button.action is not Action.ANSWER:
            return Answered(text=UNKNOWN)
        return await self._take(question, question.form, state, button, event)

    async def _by_token(self, token: str) -> tuple[Question, Button] | None:
        found = await self._questions.by_token(token)
        return None if found is None else (self._decisions.named(found[0]), found[1])

    async def _take(
        self, question: Question, form: Form, state: FormState, button: Button, event: FormSubmitted
    ) -> Answered:
        argument: Mapping[str, object] = read_argument(button.argument)
        outcome = moves.submitted(form, state, argument, event.values)
        if not isinstance(outcome, Move):
            return Answered(text=outcome.reason if isinstance(outcome, NoMove) else "")
        moved = await self._steps.take(
            question, state, outcome, actor=event.sender, token=button.token
        )
        return Answered(text=OLDER if isinstance(moved, Stale) else "")

    async def _form_press(
        self, question: Question, form: Form, button: Button, actor: Actor, inbound: InboundId
    ) -> Answered:
        state = await self._questions.form_state(question.id) or NO_STATE
        outcome = moves.press(form, state, button, pick=question.kind is QuestionKind.CHOICE)
        match outcome:
            case NoMove():
                return Answered(text=outcome.reason)
            case Finish():
                return await self._decide(question, button, actor, content=outcome.content)
            case Move():
                moved = await self._steps.take(
                    question, state, outcome, actor=actor, token=button.token, inbound=inbound
                )
                return Answered(text=OLDER if isinstance(moved, Stale) else "")

    async def _decide(
        self,
        question: Question,
        button: Button,
        actor: Actor,
        *,
        content: Mapping[str, object] | None = None,
    ) -> Answered:
        # The event stays open until the person is told: killed in between, it is tried again.
        ruling = await self._decisions.decide(
            question,
            actor=actor,
            surface=Surface.BUTTON,
            action=button.action,
            content=content,
            token=button.token,
        )
        text = self._decisions.sentence(ruling, question, actor=actor, action=button.action)
        return Answered(text=text, ruling=ruling)

    async def _refused(
        self, question: Question, action: Action, actor: Actor, place: Place
    ) -> Answered | None:
        if not place.shows_same_as(question.shown_in):
            await self._decisions.refuse(
                question, actor=actor, surface=Surface.BUTTON, action=action
            )
            return Answered(text=ELSEWHERE)
        if self._decisions.may(question, actor=actor, action=action):
            return None
        refused = await self._decisions.refuse(
            question, actor=actor, surface=Surface.BUTTON, action=action
        )
        return Answered(text=refusal(refused.why, question, actor=actor, action=action))

    async def _closed(self, question: Question, action: Action, actor: Actor) -> Answered | None:
        if question.state is not QuestionState.PENDING:
            why, text = Why.LATE, late(question, actor=actor, action=action)
        elif question.expires_at <= self._clock.now():
            why, text = Why.EXPIRED, f"Too late: it was {no_answer(question)}."
        else:
            return None
        await self._decisions.refuse(
            question, actor=actor, surface=Surface.BUTTON, action=action, why=why
        )
        return Answered(text=text)
