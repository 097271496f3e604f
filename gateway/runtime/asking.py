"""Puts questions to people: stores one with its card, and waits until it is settled or due."""

import asyncio
import base64
import secrets
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from typing import Final

from gateway.domain.errors import Conflict
from gateway.domain.ids import Place, QuestionId
from gateway.domain.operations.questions import Ask
from gateway.domain.question import Question, QuestionState
from gateway.ports import Clock, Questions, QuestionStore, Renderer
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.decisions import Decisions
from gateway.runtime.drafts import Draft
from gateway.runtime.drawing import draw
from gateway.runtime.wakeups import Wakeups

SHORT_LENGTH: Final = 4
MAX_CLASHES: Final = 20
LOOK_AGAIN_SECONDS: Final = 10.0
"""Wake-ups may be missed (another process decided): the row is read this often anyway."""


class Asking:
    """Asks and waits; what an answer means is the broker's."""

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
        self._renderers = renderers
        self._decisions = decisions
        self._wakeups = wakeups
        self._clock = clock
        self._config = config

    async def ask(self, draft: Draft, *, shown_in: Place) -> Question | str:
        """Store a question with its card; a text says why it cannot be shown in that place."""
        renderer = self._renderers[shown_in.platform]
        for clash in range(MAX_CLASHES):
            # A few open questions rarely share four characters; many may.
            question = self._question(draft, short=SHORT_LENGTH + clash // 2, shown_in=shown_in)
            drawn = draw(
                question,
                draft.prompt,
                renderer=renderer,
                now=question.created_at,
                config=self._config,
            )
            if drawn.file is not None and not renderer.capabilities.uploads:
                return "the arguments are too long to be shown here"
            try:
                stored = await self._store.ask(
                    Ask(
                        question=question,
                        buttons=drawn.buttons,
                        card=drawn.card,
                        file=drawn.file,
                        field=draft.field,
                    )
                )
            except Conflict:
                continue
            self._wakeups.deliveries()
            return stored
        raise Conflict("no free id for a question")

    async def settled(self, question: Question) -> Question:
        """Return the question once it has ended; at its deadline this ends it."""
        current = question
        while current.state is QuestionState.PENDING:
            left = (current.expires_at - self._clock.now()).total_seconds()
            if left <= 0:
                await self._decisions.expire([current])
            else:
                await self._news(current.id, min(left, LOOK_AGAIN_SECONDS))
            found = await self._questions.find(current.id)
            if not isinstance(found, Question):
                raise Conflict(f"question {current.id} is gone")
            current = found
        return self._decisions.named(current)

    async def _news(self, question: QuestionId, seconds: float) -> None:
        await _first(
            self._wakeups.wait_settled(question), self._clock.sleep(seconds), name=question
        )

    def _question(self, draft: Draft, *, short: int, shown_in: Place) -> Question:
        now = self._clock.now()
        identifier = new_question_id()
        call = draft.call
        return Question(
            id=identifier,
            short=identifier[:short],
            kind=draft.kind,
            place=call.place,
            shown_in=shown_in,
            requester=call.requester,
            actions=draft.actions,
            body=draft.body,
            args_sha=draft.args_sha,
            created_at=now,
            expires_at=now + timedelta(seconds=draft.timeout),
            approvers=draft.approvers,
            quorum=draft.quorum,
            session=call.session,
            turn=call.turn,
            step=call.step,
            server=draft.server,
            server_sha=draft.server_sha,
            tool=draft.tool,
            tool_def_sha=draft.tool_def_sha,
            arguments=draft.arguments,
            form=draft.form,
        )


def new_question_id() -> QuestionId:
    """Return 128 random bits as 26 characters of lower-case base32."""
    text = base64.b32encode(secrets.token_bytes(16)).decode("ascii")
    return QuestionId(text.rstrip("=").lower())


async def _first(*ways: Coroutine[None, None, None], name: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        racers = [tasks.create_task(way, name=f"question:{name}") for way in ways]
        await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
        for racer in racers:
            racer.cancel()
