"""One turn: model, tools, model, …, reply. Every step is in the journal before and after it happens.

It ends with a value; storing that end is for the worker, so that stopping a turn and finishing
it cannot both happen.
"""

import asyncio
import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.domain.deadline import Deadline
from gateway.domain.errors import ContextTooLong, ModelError
from gateway.domain.ids import MessageId
from gateway.domain.message import Attachment
from gateway.domain.model import Finish
from gateway.domain.operations.turns import Claim, RepliedStep, TurnEnd, UsageRecord
from gateway.ports import ModelProvider
from gateway.runtime.calls import StepWork
from gateway.runtime.config import GatewayConfig
from gateway.runtime.context import Context
from gateway.runtime.journal import Journal, usage_of
from gateway.runtime.journal_text import TimedReply
from gateway.runtime.model_call import ModelCaller
from gateway.runtime.outgoing import reply_files
from gateway.runtime.persist import persist
from gateway.runtime.streaming import Growing
from gateway.telemetry.faults import FaultPoint, reach

logger = logging.getLogger(__name__)

MAX_ATTEMPTS: Final = 20
"""Claims of one turn; one that keeps taking the process down with it is given up."""

STOPPED: Final = "Stopped: the turn, its tool calls and its questions have ended."
INTERRUPTED: Final = "Interrupted: a newer message came, which I answer now."
CUT_NOTE: Final = "\n\n*(The answer was cut at the model's length limit.)*"
EMPTY_REPLY: Final = "The model gave an empty answer, also when asked again. Please ask once more."
TOO_MANY_ATTEMPTS: Final = (
    "I could not finish this: it was interrupted too often. Please ask again."
)
BROKE: Final = "Something went wrong on our side; the log has the detail."


class Cut(StrEnum):
    """Why a person ended a turn early, as its closed cards say it."""

    STOPPED = "stopped"
    INTERRUPTED = "a newer message came"


_SAID: Final = {Cut.STOPPED: STOPPED, Cut.INTERRUPTED: INTERRUPTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a turn ended, ready to be stored.

    `files` go with the reply. `hides` are messages that the model is told no more; `aside`: the
    reply is for people alone.
    """

    end: TurnEnd
    reply: str
    replied: tuple[RepliedStep, ...] = ()
    files: tuple[Attachment, ...] = ()
    usage: tuple[UsageRecord, ...] = ()
    error: str = ""
    hides: tuple[MessageId, ...] = ()
    aside: bool = False


class Turn:
    """A claimed turn; `run` may be cancelled at any point and the turn taken up again later.

    `arrivals` is set when a message has come that may join it; `growing` gets the model's text as it
    is written, None when nobody looks on.
    """

    def __init__(
        self,
        *,
        claim: Claim,
        journal: Journal,
        context: Context,
        work: StepWork,
        caller: ModelCaller,
        provider: ModelProvider,
        config: GatewayConfig,
        arrivals: asyncio.Event,
        hides: tuple[MessageId, ...] = (),
        aside: bool = False,
        growing: Growing | None = None,
    ) -> None:
        self._claim = claim
        self._journal = journal
        self._context = context
        self._work = work
        self._caller = caller
        self._provider = provider
        self._config = config
        self._arrivals = arrivals
        self._hides = hides
        self._aside = aside
        self._growing = growing
        self._deadline = Deadline(config.turn_timeout)
        self._unrecorded: list[UsageRecord] = []

    @property
    def claim(self) -> Claim:
        return self._claim

    @property
    def is_waiting(self) -> bool:
        """True while a person has to decide something before it can go on."""
        return self._deadline.is_paused

    async def run(self) -> Ending:
        """Work until there is a reply, or a reason why there is none.

        Raises:
            Fenced: The conversation is no longer ours.
        """
        if self._claim.attempts > MAX_ATTEMPTS:
            return await self.broken(TOO_MANY_ATTEMPTS, error="too many attempts")
        try:
            async with self._deadline:
                return await self._rounds()
        except TimeoutError:
            why = (
                f"The time limit of {_span(self._config.turn_timeout)} for one answer was reached."
            )
            return await self.broken(f"I stopped. {why}", error="turn_timeout")
        except ModelError as error:
            logger.warning("turn failed: %s", error)
            return await self.broken(error.public_message, error=str(error))

    def abandon(self) -> None:
        """Say that a person ends it: call this before `run` is cancelled, and `stopped` after."""
        self._work.broker.abandon(self._claim.turn)

    async def stopped(self, cut: Cut) -> Ending:
        """Withdraw what is asked because a person ended the turn."""
        await self._withdraw(cut.value)
        return self._ending(TurnEnd.CANCELLED, _SAID[cut], error=cut.value)

    async def broken(self, reply: str = BROKE, *, error: str) -> Ending:
        """Withdraw what is asked because the turn cannot go on; `reply` says so to the person."""
        await self._withdraw("its turn ended early")
        return self._ending(TurnEnd.FAILED, reply, error=error)

    async def _rounds(self) -> Ending:
        await reach(FaultPoint.TURN_CLAIMED)
        await self._context.load()
        await self._run_open_steps()
        was_empty = False
        while self._journal.used_rounds < self._config.max_rounds:
            await self._let_join()
            timed = await self._ask()
            self._journal.count_round()
            if timed.reply.calls:
                if self._journal.used_rounds == self._config.max_rounds:
                    # Nobody would see what these calls give.
                    self._unrecorded.append(usage_of(timed))
                    break
                await self._journal.replied(timed, self._work.toolbox.plan(timed.reply.calls))
                await self._run_open_steps()
                continue
            if timed.reply.text.strip():
                return self._done(timed)
            self._unrecorded.append(usage_of(timed))
            if was_empty:
                return self._ending(TurnEnd.FAILED, EMPTY_REPLY, error="empty reply")
            was_empty = True
        limit = self._config.max_rounds
        reply = (
            f"I stopped after {limit} rounds without a final answer. Ask me to go on if you like."
        )
        return self._ending(TurnEnd.FAILED, reply, error="max_rounds")

    async def _run_open_steps(self) -> None:
        await self._work.run_all(self._journal.open_steps(), deadline=self._deadline)

    async def _let_join(self) -> None:
        if self._arrivals.is_set():
            # Cleared first: what comes meanwhile sets it again.
            self._arrivals.clear()
            await self._journal.join()
            await self._context.attend(self._journal.joined)

    async def _ask(self) -> TimedReply:
        try:
            return await self._ask_once()
        except ContextTooLong as error:
            logger.warning("%s; compacting", error)
        await self._context.shrink()
        return await self._ask_once()

    async def _ask_once(self) -> TimedReply:
        await self._context.look_at_answers(self._journal.rounds)
        request = self._context.request(self._journal.rounds, self._journal.joined)
        if self._growing is not None:
            self._growing.begin(item.reply.reply.text for item in self._journal.rounds)
        return await self._caller.ask(
            self._provider,
            request,
            conversation=self._claim.place.session_key,
            growing=self._growing,
        )

    def _done(self, timed: TimedReply) -> Ending:
        cut = timed.reply.finish is Finish.LENGTH
        self._unrecorded.append(usage_of(timed))
        return self._ending(
            TurnEnd.DONE,
            timed.reply.text + (CUT_NOTE if cut else ""),
            replied=(self._journal.final(timed),),
            files=reply_files(
                file
                for item in self._journal.rounds
                for step in item.steps
                if step.answer is not None
                for file in step.answer.files
            ),
        )

    async def _withdraw(self, why: str) -> None:
        # Open steps are closed by the store, together with the turn.
        await persist(
            lambda: self._work.broker.withdraw_turn(self._claim.turn, why), clock=self._work.clock
        )

    def _ending(
        self,
        end: TurnEnd,
        reply: str,
        *,
        replied: tuple[RepliedStep, ...] = (),
        files: tuple[Attachment, ...] = (),
        error: str = "",
    ) -> Ending:
        return Ending(
            end=end,
            reply=reply,
            replied=replied,
            files=files,
            usage=(*self._journal.usage(), *self._unrecorded),
            error=error,
            # What went wrong leaves the conversation as it was.
            hides=self._hides if end is TurnEnd.DONE else (),
            aside=self._aside,
        )


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:g} seconds"
    return f"{seconds / 60:g} minutes"
