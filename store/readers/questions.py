"""Questions with their buttons and how far their forms have come."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from gateway.domain.conversation import Ambiguous
from gateway.domain.errors import NotFound
from gateway.domain.form import FormState
from gateway.domain.ids import Place, QuestionId, TurnId
from gateway.domain.question import Button, Question, Record
from gateway.ports import Clock
from store.codec import (
    RowLike,
    attempt_from_row,
    button_from_row,
    clean,
    form_state_from_row,
    from_ms_or_none,
    ms,
    question_from_row,
    storable,
    to_json,
)
from store.readers.database import Database
from store.readers.decoding import decode_each
from store.sql.reads import questions as sql

MIN_PREFIX: Final = 4
MAX_CANDIDATES: Final = 10


class QuestionReader:
    """Implements `gateway.ports.Questions`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def find(self, id_or_short: str) -> Question | Ambiguous | None:
        """Find by id, by the short id of a pending one, or by a prefix.

        Among several with the prefix, the only pending one is meant.
        """
        text = storable(id_or_short.strip().lower())
        # A call waits for what this finds: by its id, one visit to the database must do.
        row = await self._database.first(sql.QUESTION_BY_ID, id=text)
        if row is not None:
            return question_from_row(row)
        async with self._database.snapshot() as read:
            row = await read.first(sql.QUESTION_BY_ID, id=text)
            row = row or await read.first(sql.QUESTION_BY_SHORT, short=text)
            if row is not None:
                return question_from_row(row)
            if len(text) < MIN_PREFIX:
                return None
            rows = await read.all(sql.QUESTIONS_BY_PREFIX, prefix=text, limit=MAX_CANDIDATES)
        found = [question_from_row(row) for row in rows]
        if len(found) > 1:
            found = [item for item in found if item.decision is None] or found
        if len(found) > 1:
            return Ambiguous(candidates=tuple(item.id for item in found))
        return found[0] if found else None

    async def of_step(self, turn: TurnId, step: int) -> Question | None:
        """Return the newest question a step asked."""
        row = await self._database.first(sql.QUESTION_OF_STEP, turn=turn, step=step)
        return None if row is None else question_from_row(row)

    async def pending(
        self,
        *,
        turn: TurnId | None = None,
        shown_in: Place | None = None,
        due: datetime | None = None,
        limit: int = 200,
    ) -> Sequence[Question]:
        """Return pending ones of every kind, oldest first."""
        statement = sql.QUESTIONS_PENDING
        if turn is not None:
            statement += sql.AND_TURN
        if shown_in is not None:
            statement += sql.AND_SHOWN_IN
        if due is not None:
            statement += sql.AND_DUE
        rows = await self._database.all(
            statement + sql.OLDEST,
            turn=turn,
            session_key=None if shown_in is None else storable(shown_in.session_key),
            due=None if due is None else ms(due),
            limit=limit,
        )
        return decode_each(rows, question_from_row, what="question")

    async def open(self, *, limit: int) -> Sequence[Question]:
        """Return pending ones that have not expired and may be listed to others, oldest first."""
        rows = await self._database.all(sql.QUESTIONS_OPEN, now=ms(self._clock.now()), limit=limit)
        return decode_each(rows, question_from_row, what="question")

    async def page(self, *, before: str | None = None, limit: int) -> Sequence[Question]:
        """Return all, newest first.

        Raises:
            NotFound: `before` is no id of a question.
        """
        if before is None:
            rows = await self._database.all(sql.QUESTIONS_NEWEST, limit=limit)
            return decode_each(rows, question_from_row, what="question")
        async with self._database.snapshot() as read:
            bound = await read.first(sql.QUESTION_CREATED, id=storable(before))
            if bound is None:
                raise NotFound("question", before)
            rows = await read.all(
                sql.QUESTIONS_OLDER, at=bound["created_at"], id=before, limit=limit
            )
        return decode_each(rows, question_from_row, what="question")

    async def records(self, questions: Sequence[QuestionId]) -> Mapping[QuestionId, Record]:
        """Return every try to decide these questions, and what their calls gave."""
        these = to_json(list(questions))
        async with self._database.snapshot() as read:
            attempts = await read.all(sql.ATTEMPTS, questions=these)
            results = await read.all(sql.RESULTS, questions=these)
        gave = {clean(row["id"]): clean(row["state"]) for row in results}
        tried: dict[str, list[RowLike]] = {}
        for row in attempts:
            tried.setdefault(clean(row["question_id"]), []).append(row)
        return {
            question: Record(
                attempts=decode_each(tried.get(question, ()), attempt_from_row, what="vote"),
                result=gave.get(question, ""),
            )
            for question in questions
        }

    async def by_token(self, token: str) -> tuple[Question, Button] | None:
        """Return what a button means, whatever became of its question."""
        # No snapshot, which would be two more visits between a press and its tool: what a button
        # means never changes, and its question is as it was at some moment either way.
        button = await self._database.first(sql.BUTTON, token=storable(token))
        if button is None:
            return None
        question = await self._database.first(sql.QUESTION_BY_ID, id=button["question_id"])
        return None if question is None else (question_from_row(question), button_from_row(button))

    async def buttons(self, question: QuestionId) -> Sequence[Button]:
        """Return the buttons of a question in the order they were made."""
        rows = await self._database.all(sql.BUTTONS, question=question)
        return tuple(button_from_row(row) for row in rows)

    async def form_state(self, question: QuestionId) -> FormState | None:
        """Return how far a form asked field by field has come; None when it is not."""
        row = await self._database.first(sql.FORM_STATE, question=question)
        return None if row is None else form_state_from_row(row)

    async def next_expiry(self) -> datetime | None:
        """Return when the next pending question expires."""
        row = await self._database.first(sql.NEXT_EXPIRY)
        return None if row is None else from_ms_or_none(row["at"])
