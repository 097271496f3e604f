"""Answers a server's requests for our model, within the limits of its entry. One for each server.

Runs in the task of the request, never on a connection's reader. What a provider said of a failure
goes to our log alone: it may hold a credential.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from gateway.domain.errors import (
    ContextTooLong,
    Fenced,
    ModelError,
    ModelRateLimited,
    ModelRejected,
)
from gateway.domain.model import ModelReply, ModelRequest
from gateway.ports import Approval, Clock, ModelProvider
from gateway.telemetry import agent_log
from mcp_host.sampling import Asked, Refusal, SamplingRefused, read_request, result_of
from mcp_host.server_config import AuditLevel, SamplingConfig

logger = logging.getLogger(__name__)

WINDOW_SECONDS: Final = 60.0


class Consenting(Protocol):
    """The call a request belongs to, as far as a person is asked in it."""

    async def may_sample(self, excerpt: str) -> Approval:
        """Ask whether the server may use our model."""
        ...


@dataclass(slots=True)
class SamplingCall:
    """What is remembered of the requests inside one call: a person's word, and rounds of tools."""

    consenting: Consenting | None = None
    consent: Approval | None = None
    tool_rounds: int = 0
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def consented(self, excerpt: str) -> Approval:
        """Return a person's word, asking for it once in a call."""
        async with self.asking:
            if self.consent is None:
                if self.consenting is None:
                    return Approval(allowed=False, reason=_NOBODY)
                self.consent = await self.consenting.may_sample(excerpt)
            return self.consent


@dataclass(slots=True, kw_only=True)
class SamplingCount:
    """What a server's requests came to since its entry was read; tokens are of answers alone."""

    requests: int = 0
    answered: int = 0
    refused: int = 0
    errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Sampler:
    """Puts one server's requests to the model; `models` is None when there is none."""

    def __init__(
        self,
        server: str,
        config: SamplingConfig,
        *,
        models: ModelProvider | None,
        asks_first: bool,
        clock: Clock,
    ) -> None:
        self.count = SamplingCount()
        self.server = server
        self._config = config
        self._models = models
        self._asks_first = asks_first
        self._clock = clock
        self._times: deque[float] = deque()
        self._elsewhere = SamplingCall()

    @property
    def offered(self) -> bool:
        """True when requests can be served, and so the capability is advertised."""
        return self._config.enabled and self._models is not None

    @property
    def takes_tools(self) -> bool:
        """True when a request may bring tools of its own."""
        return self.offered and self._config.max_tool_rounds > 0

    async def answer(
        self, params: Mapping[str, object], call: SamplingCall | None = None
    ) -> dict[str, object]:
        """Return the raw result of a request; `call` is the one it belongs to, when that is known.

        Raises:
            SamplingRefused: With what the server may know.
        """
        self.count.requests += 1
        try:
            return await self._answer(params, call or self._elsewhere)
        except SamplingRefused as refused:
            self.count.refused += 1
            self._audit(f"refused: {refused.why}")
            raise
        except ModelError as error:
            self.count.errors += 1
            logger.warning("server %s: sampling failed: %s", self.server, error)
            raise SamplingRefused(_told(error)) from None
        except TimeoutError:
            self.count.errors += 1
            why = f"the model gave no answer in {self._config.timeout:g} s"
            self._audit(why)
            raise SamplingRefused(why) from None
        except Fenced:
            raise
        except Exception:
            self.count.errors += 1
            logger.exception("server %s: sampling broke", self.server)
            raise SamplingRefused("an error in the gateway itself") from None

    async def _answer(self, params: Mapping[str, object], call: SamplingCall) -> dict[str, object]:
        models = self._models
        if models is None or not self._config.enabled:
            raise SamplingRefused("sampling is not offered", Refusal.INVALID)
        asked = read_request(params)
        self._check_tools(asked)
        if self._asks_first:
            approval = await call.consented(asked.excerpt)
            if not approval.allowed:
                raise SamplingRefused(f"it was not allowed: {approval.reason}", Refusal.PERSON)
        self._take_turn()
        began = self._clock.monotonic()
        async with asyncio.timeout(self._config.timeout):
            reply = await self._complete(models, asked)
        reply = replace(reply, model=reply.model or models.name)
        self._note(reply, ms=(self._clock.monotonic() - began) * 1000)
        call.tool_rounds = call.tool_rounds + 1 if reply.calls else 0
        if max(call.tool_rounds, asked.tool_rounds + bool(reply.calls)) > self._rounds:
            raise SamplingRefused(f"more than {self._rounds} rounds of tools")
        result = result_of(reply, asked)
        self.count.answered += 1
        return result

    async def _complete(self, models: ModelProvider, asked: Asked) -> ModelReply:
        """Ask the model of the entry, else the first one hinted at that may answer, else ours."""
        *hinted, last = (self._config.model,) if self._config.model else (*asked.hints, "")
        for name in hinted:
            try:
                return await models.complete(self._request(asked, name))
            except ModelRejected as error:
                # A hint is no more than that.
                logger.debug("server %s: a model it hints at: %s", self.server, error)
        return await models.complete(self._request(asked, last))

    def _request(self, asked: Asked, model: str) -> ModelRequest:
        cap = self._config.max_tokens_cap
        return ModelRequest(
            system=asked.system,
            history=asked.history,
            functions=asked.functions,
            model=model,
            max_tokens=cap if asked.max_tokens is None else min(cap, asked.max_tokens),
            allowed_models=self._config.allowed_models,
        )

    @property
    def _rounds(self) -> int:
        return self._config.max_tool_rounds

    def _check_tools(self, asked: Asked) -> None:
        if asked.functions and not self.takes_tools:
            raise SamplingRefused("tools are not offered", Refusal.INVALID)
        if asked.tool_rounds > self._rounds:
            raise SamplingRefused(f"more than {self._rounds} rounds of tools")

    def _take_turn(self) -> None:
        """Count this request against the limit of any minute."""
        now = self._clock.monotonic()
        while self._times and self._times[0] <= now - WINDOW_SECONDS:
            self._times.popleft()
        if len(self._times) >= self._config.max_rpm:
            left = self._times[0] + WINDOW_SECONDS - now
            limit = self._config.max_rpm
            raise SamplingRefused(f"more than {limit} requests a minute; wait {left:.0f} s")
        self._times.append(now)

    def _note(self, reply: ModelReply, *, ms: float) -> None:
        self.count.input_tokens += reply.usage.input_tokens
        self.count.output_tokens += reply.usage.output_tokens
        agent_log.model_call(
            conversation=f"mcp:{self.server}",
            model=reply.model,
            ms=ms,
            outcome=reply.finish.value,
            input_tokens=reply.usage.input_tokens,
            output_tokens=reply.usage.output_tokens,
        )
        tokens = f"{reply.usage.input_tokens} tokens in, {reply.usage.output_tokens} out"
        self._audit(f"answered by {reply.model}: {tokens}")

    def _audit(self, what: str) -> None:
        logger.log(_LEVELS[self._config.log_level], "server %s: sampling: %s", self.server, what)


_LEVELS: Final = {
    AuditLevel.DEBUG: logging.DEBUG,
    AuditLevel.INFO: logging.INFO,
    AuditLevel.WARNING: logging.WARNING,
}
_NOBODY: Final = "it is not clear in which conversation to ask"


def _told(error: ModelError) -> str:
    """Return what a server may know of a failure: its class, in our own words."""
    match error:
        case ModelRateLimited():
            return "the model is busy; try again later"
        case ContextTooLong():
            return "the request is too long for the model"
        case ModelRejected():
            return "no model that may be used here answers this"
        case _:
            return "the model could not answer"
