"""Writes one step of a form: the answer, and the card that asks the next thing. Judges nobody."""

from collections.abc import Mapping

from gateway.domain.form import FormState
from gateway.domain.ids import Actor, InboundId
from gateway.domain.operations.questions import AnswerField, Stale
from gateway.domain.question import Question
from gateway.ports import Clock, QuestionStore, Renderer
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.drawing import draw
from gateway.runtime.forms.moves import Move
from gateway.runtime.wakeups import Wakeups


class FormSteps:
    """The one place where a form moves, whoever answered and by which way."""

    def __init__(
        self,
        store: QuestionStore,
        renderers: Mapping[str, Renderer],
        wakeups: Wakeups,
        clock: Clock,
        config: ApprovalsConfig,
    ) -> None:
        self._store = store
        self._renderers = renderers
        self._wakeups = wakeups
        self._clock = clock
        self._config = config

    async def take(
        self,
        question: Question,
        state: FormState,
        move: Move,
        *,
        actor: Actor,
        token: str | None = None,
        inbound: InboundId | None = None,
    ) -> FormState | Stale:
        """Write a move that was made from `state`; somebody else's newer one wins."""
        drawn = draw(
            question,
            move.prompt,
            renderer=self._renderers[question.shown_in.platform],
            now=self._clock.now(),
            config=self._config,
        )
        moved = await self._store.answer_field(
            AnswerField(
                question=question.id,
                rev=state.rev,
                field=move.field,
                next=move.next,
                card=drawn.card,
                buttons=drawn.buttons,
                value=move.value,
                skip=move.skip,
                keep=move.keep,
                others=move.others,
                left_out=move.left_out,
                token=token,
                actor=actor,
                inbound=inbound,
            )
        )
        self._wakeups.deliveries()
        return moved
