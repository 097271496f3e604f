"""Puts one call's server questions to the person who made it, through the call's approver."""

import dataclasses
import logging
from collections.abc import Mapping

from gateway.domain.errors import GatewayError
from gateway.domain.form import FormAction
from gateway.domain.tools import ToolSpec
from gateway.ports import Approval, Approver, SamplingRequest
from mcp_host.elicitation import Reply, form_request, reply_to
from mcp_host.server_config import ElicitationConfig, UrlMode

logger = logging.getLogger(__name__)


class PersonAsker:
    """Implements `calls.Asker`; what cannot be asked is declined and said in the chat."""

    def __init__(self, spec: ToolSpec, *, config: ElicitationConfig, approver: Approver) -> None:
        self._spec = spec
        self._config = config
        self._approver = approver
        self.notes: list[str] = []
        """What the model must know: that a question was answered without a person, and why."""

    async def answer(self, params: Mapping[str, object]) -> dict[str, object]:
        """Return the raw result of an `elicitation/create` with these parameters."""
        reply = await self._reply(params)
        why = f" ({reply.reason})" if reply.reason else ""
        logger.info(
            "server %s: question of %s: %s%s", self._spec.server, self._spec.name, reply.action, why
        )
        return reply.as_result()

    async def may_sample(self, excerpt: str) -> Approval:
        """Ask whether the server may use our model."""
        spec = self._spec
        return await self._approver.sample(
            SamplingRequest(
                server=spec.server, server_sha=spec.server_sha, tool=spec.name, excerpt=excerpt
            )
        )

    async def tell(self, text: str) -> None:
        """Say something about the call in its chat; a note that cannot be sent is left out."""
        try:
            await self._approver.tell(text)
        except GatewayError as error:
            logger.info("server %s: not told in the chat: %s", self._spec.server, error)

    async def _reply(self, params: Mapping[str, object]) -> Reply:
        if not self._config.enabled:
            return self._unasked(FormAction.DECLINE, "forms of this server are switched off")
        request = form_request(
            server=self._spec.server,
            server_sha=self._spec.server_sha,
            tool=self._spec.name,
            params=params,
            links=self._config.url is UrlMode.ASK,
        )
        request = dataclasses.replace(request, timeout=self._config.timeout)
        answer = await self._approver.elicit(request)
        if request.problem and answer.action is FormAction.ACCEPT:
            # What could not be shown was not agreed to.
            return self._unasked(FormAction.DECLINE, request.problem)
        reply = reply_to(answer, params)
        if answer.asked and reply.action is answer.action:
            return reply
        return self._unasked(reply.action, reply.reason)

    def _unasked(self, action: FormAction, reason: str) -> Reply:
        words = "declined" if action is FormAction.DECLINE else "not answered"
        self.notes.append(f"A question of {self._spec.server} was {words}: {reason}.")
        return Reply(action=action, reason=reason)
