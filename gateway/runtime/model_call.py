"""Asking a model: waits and repeats as its errors say, times it, and tells the agent log."""

import dataclasses
import logging
from dataclasses import dataclass
from typing import Final

from gateway.domain.errors import ModelError, ModelRateLimited, ModelUnavailable
from gateway.domain.model import FunctionCall, ModelReply, ModelRequest
from gateway.ports import Clock, ModelProvider
from gateway.runtime.journal_text import TimedReply
from gateway.runtime.narration import AgentLog
from gateway.runtime.streaming import Growing
from gateway.telemetry.faults import FaultPoint, reach

logger = logging.getLogger(__name__)

MAX_TRIES: Final = 4
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0
"""A provider that wants a longer pause is not waited for: the person is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCaller:
    """Asks models on behalf of a conversation."""

    clock: Clock
    log: AgentLog

    async def ask(
        self,
        provider: ModelProvider,
        request: ModelRequest,
        *,
        conversation: str,
        growing: Growing | None = None,
    ) -> TimedReply:
        """Return the reply, after as many tries as the errors allow; `growing` gets its text before.

        Raises:
            ModelError: Not retryable, or still there after the last try.
        """
        backoff = FIRST_WAIT_SECONDS
        for _ in range(MAX_TRIES - 1):
            try:
                return await self._ask_once(provider, request, conversation, growing)
            except ModelRateLimited as error:
                wait = backoff if error.retry_after is None else error.retry_after
                if wait > LONGEST_WAIT_SECONDS:
                    raise
                logger.warning("%s; waiting %g s", error, wait)
            except ModelUnavailable as error:
                wait = backoff
                logger.warning("%s; next try in %g s", error, wait)
            await self.clock.sleep(wait)
            backoff *= 2
        return await self._ask_once(provider, request, conversation, growing)

    async def _ask_once(
        self,
        provider: ModelProvider,
        request: ModelRequest,
        conversation: str,
        growing: Growing | None,
    ) -> TimedReply:
        started = self.clock.monotonic()
        await reach(FaultPoint.MODEL_ASKED)
        if growing is not None:
            growing.restart()
        try:
            reply = await provider.complete(request, on_text=growing.add if growing else None)
        except ModelError as error:
            self.log.model_call(
                conversation=conversation,
                model=error.model,
                ms=self._since(started),
                outcome="error",
                error=error.problem,
            )
            raise
        await reach(FaultPoint.MODEL_ANSWERED)
        timed = TimedReply(reply=_named(reply, provider), ms=self._since(started))
        self.log.model_call(
            conversation=conversation,
            model=timed.reply.model,
            ms=timed.ms,
            outcome=timed.reply.finish.value,
            input_tokens=timed.reply.usage.input_tokens,
            output_tokens=timed.reply.usage.output_tokens,
        )
        return timed

    def _since(self, started: float) -> int:
        return round((self.clock.monotonic() - started) * 1000)


def _named(reply: ModelReply, provider: ModelProvider) -> ModelReply:
    """Fill in who answered, and give each call an id of its own: it pairs the call with its answer."""
    taken: set[str] = set()
    calls: list[FunctionCall] = []
    for i, call in enumerate(reply.calls):
        unique = call.id
        while not unique or unique in taken:
            unique = f"{unique or 'call'}-{i}"
        taken.add(unique)
        calls.append(dataclasses.replace(call, id=unique))
    return dataclasses.replace(reply, calls=tuple(calls), model=reply.model or provider.name)
