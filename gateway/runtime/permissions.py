"""Puts to a person whether another agent may do something: a tool of its own, which we never run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from gateway.domain.canonical import canonical, sha256_of
from gateway.domain.conversation import Ambiguous, Channel
from gateway.domain.ids import Actor, Place
from gateway.domain.question import Action, ApproverPolicy, Approvers, Question
from gateway.domain.tools import ToolCall, ToolSpec
from gateway.ports import Channels, Conversations, PermissionRequest, Renderer
from gateway.runtime.asking import Asking
from gateway.runtime.config import ApprovalsConfig
from gateway.runtime.drafts import approval_draft

ACTIONS: Final = (Action.ALLOW_ONCE, Action.DENY)
MAX_TEXT: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAsked:
    """Nobody was asked, by a code of the control API."""

    code: str
    sentence: str


class Permissions:
    """Asks whom the agent works for: who wrote last in its conversation, else the admins at home."""

    def __init__(
        self,
        asking: Asking,
        conversations: Conversations,
        channels: Channels,
        renderers: Mapping[str, Renderer],
        config: ApprovalsConfig,
    ) -> None:
        self._asking = asking
        self._conversations = conversations
        self._channels = channels
        self._renderers = renderers
        self._config = config

    async def ask(self, request: PermissionRequest, *, operator: Actor) -> Question | NotAsked:
        """Show the question with two buttons, and return it; how it ends is told as an event."""
        place, requester, policy = None, operator, ApproverPolicy.ADMINS
        if request.session_key and request.requester:
            view = await self._conversations.find(request.session_key)
            if view is None:
                return NotAsked(code="not_found", sentence="there is no such conversation")
            place, requester = view.place, Actor.parse(request.requester)
            policy = ApproverPolicy.REQUESTER
        place = place or await self._home()
        renderer = None if place is None else self._renderers.get(place.platform)
        if place is None or renderer is None or not renderer.capabilities.buttons:
            sentence = (
                "no chat can be asked: there is no conversation and no home channel with buttons"
            )
            return NotAsked(code="no_home_channel", sentence=sentence)
        draft = approval_draft(
            _call(request, place, requester), _spec(request), actions=ACTIONS, config=self._config
        )
        draft = replace(draft, approvers=Approvers(policy=policy), quorum=1)
        asked = await self._asking.ask(draft, shown_in=place)
        if isinstance(asked, str):
            return NotAsked(code="rejected", sentence=asked)
        return asked

    async def _home(self) -> Place | None:
        for platform in self._renderers:
            found = await self._channels.resolve(platform)
            if isinstance(found, Ambiguous):
                found = await self._channels.resolve(found.candidates[0])
            if isinstance(found, Channel):
                return found.place
        return None


def _call(request: PermissionRequest, place: Place, requester: Actor) -> ToolCall:
    return ToolCall(
        id=request.id,
        alias=request.tool,
        arguments=canonical({"input": request.preview[:MAX_TEXT]}),
        place=place,
        requester=requester,
    )


def _spec(request: PermissionRequest) -> ToolSpec:
    return ToolSpec(
        server=request.agent,
        name=request.tool,
        title="",
        alias=request.tool,
        description=request.description[:MAX_TEXT],
        input_schema={},
        definition_sha=sha256_of(canonical({"agent": request.agent, "tool": request.tool})),
    )
