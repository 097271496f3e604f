"""What keeps open questions true: closes orphans of an earlier process, ends those nobody answered."""

import logging
from typing import Final

from gateway.domain.ids import QuestionId
from gateway.domain.question import Question
from gateway.ports import Clock, Questions
from gateway.runtime.decisions import Decisions
from gateway.runtime.wakeups import Wakeups

logger = logging.getLogger(__name__)

ORPHANED: Final = "the gateway was restarted"
RETRY_SECONDS: Final = 5.0


async def withdraw_orphans(
    orphans: tuple[QuestionId, ...], *, questions: Questions, decisions: Decisions
) -> None:
    """Close the cards of questions that nobody waits for any more."""
    found = [await questions.find(question) for question in orphans]
    open_ones = [item for item in found if isinstance(item, Question)]
    await decisions.withdraw(open_ones, reason=ORPHANED)
    if open_ones:
        logger.info("closed %d questions of an earlier run", len(open_ones))


async def expire_questions(
    *, questions: Questions, decisions: Decisions, wakeups: Wakeups, clock: Clock
) -> None:
    """End questions when their time is up, until cancelled."""
    # A new question puts its card into the outbox: that ring tells of an earlier expiry.
    with wakeups.delivery_bell() as bell:
        while True:
            due = await questions.pending(due=clock.now(), limit=50)
            await decisions.expire(due)
            next_expiry = None if due else await questions.next_expiry()
            if due or (next_expiry is not None and next_expiry <= clock.now()):
                continue
            await bell.wait_until(next_expiry, clock=clock)
