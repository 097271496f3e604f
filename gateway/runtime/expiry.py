"""Ends questions that are due and that nobody waits for: sleeps until the next one, never polls fast."""

import logging
from typing import Final

from gateway.ports import Clock, Questions
from gateway.runtime.decisions import Decisions
from gateway.runtime.persist import persist

logger = logging.getLogger(__name__)

LONGEST_SLEEP_SECONDS: Final = 30.0
"""A question asked meanwhile is ended by its own waiter; only one without a waiter ends this late."""

SHORTEST_SLEEP_SECONDS: Final = 0.05


class Expiry:
    """The one sweep of the process. `run` works until cancelled."""

    def __init__(self, questions: Questions, decisions: Decisions, clock: Clock) -> None:
        self._questions = questions
        self._decisions = decisions
        self._clock = clock

    async def run(self) -> None:
        """End what is due, again and again."""
        while True:
            await self._clock.sleep(await persist(self.sweep, clock=self._clock))

    async def sweep(self) -> float:
        """End what is due now; return how many seconds may pass until the next look."""
        now = self._clock.now()
        due = await self._questions.pending(due=now)
        if due:
            logger.info("%d questions had no answer in time", len(due))
            await self._decisions.expire(due)
        following = await self._questions.next_expiry()
        if following is None:
            return LONGEST_SLEEP_SECONDS
        left = (following - self._clock.now()).total_seconds()
        return min(max(left, SHORTEST_SLEEP_SECONDS), LONGEST_SLEEP_SECONDS)
