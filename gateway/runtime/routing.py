"""Where the card of an approval is shown: in its chat, in the home channel, or with an admin.

Reads the directory and the rules; asks nobody and writes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.domain.conversation import Ambiguous, Channel
from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.question import ApproverPolicy, Approvers
from gateway.domain.tools import ToolCall
from gateway.ports import Channels, Renderer
from gateway.runtime.access import Access
from gateway.runtime.cards import one_line
from gateway.runtime.config import ApprovalsConfig, PersonRole, Route

MAX_CHATS: Final = 5
"""Direct chats of one admin that are looked at."""

NO_HOME: Final = (
    "approvals go to the home channel and there is none: an admin gives /sethome in a chat"
)
NO_ADMIN: Final = (
    "approvals go to an admin and none can be reached: one of access.admins writes to the bot, "
    "or gives /sethome in a chat"
)
NOBODY: Final = (
    "nobody can be asked on {}: an admin gives /sethome in a chat where somebody can answer"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """Where a card goes; `told` are the chats of further admins, who are told in words."""

    shown_in: Place
    told: tuple[Place, ...] = ()


class Routing:
    """Follows `approvals.route`; `answerable` says whether somebody can answer in a place now."""

    def __init__(
        self,
        channels: Channels,
        renderers: Mapping[str, Renderer],
        access: Access,
        config: ApprovalsConfig,
        *,
        answerable: Callable[[Place], bool] = lambda place: True,
    ) -> None:
        self._channels = channels
        self._renderers = renderers
        self._access = access
        self._config = config
        self._answerable = answerable

    def rules(self, call: ToolCall) -> ApprovalsConfig:
        """Return the section as it holds for a call: a guest never decides what a guest asked."""
        policy = self._config.approvers.policy
        if policy is ApproverPolicy.REQUESTER and self._is_guest(call):
            return replace(self._config, approvers=Approvers(policy=ApproverPolicy.ADMINS))
        return self._config

    async def route(self, call: ToolCall) -> Routed | str:
        """Return where the card of a call goes; a text says why it can go nowhere, and what helps."""
        match self._config.route:
            case Route.HERE:
                return await self._here(call)
            case Route.HOME:
                return await self._home(call) or self._own(call) or NO_HOME
            case Route.DM_ADMINS:
                found = self._own(call) or await self._admins(call) or await self._home(call)
                return found or NO_ADMIN

    def here(self, call: ToolCall) -> Routed | str:
        """Return the chat of the call itself, or why nobody can be asked there."""
        if self.shows_cards(call.place):
            return Routed(shown_in=call.place)
        return NOBODY.format(one_line(call.place.platform))

    async def _here(self, call: ToolCall) -> Routed | str:
        here = self.here(call)
        if not isinstance(here, str) and self._can_be_decided_in(call):
            return here
        if self._others_decide:
            found = await self._home(call) or await self._admins(call)
            if found is not None:
                return found
        if self._is_guest(call):
            return NO_ADMIN
        return here

    def _own(self, call: ToolCall) -> Routed | None:
        """Return the chat of the call where an admin is alone with us: who decides is there."""
        is_admin = self._access.role(call.requester) is PersonRole.ADMIN
        alone = call.place.chat_type is ChatType.DM
        there = self.shows_cards(call.place) and self._answerable(call.place)
        return Routed(shown_in=call.place) if is_admin and alone and there else None

    def _can_be_decided_in(self, call: ToolCall) -> bool:
        if self._is_guest(call) or not self._answerable(call.place):
            return False
        return call.place.chat_type is not ChatType.DM or self._may_decide(call.requester)

    def _may_decide(self, actor: Actor) -> bool:
        approvers = self._config.approvers
        if self._access.role(actor) is PersonRole.ADMIN:
            return True
        if approvers.policy is ApproverPolicy.LIST:
            return str(actor) in approvers.ids
        return approvers.policy is ApproverPolicy.REQUESTER

    @property
    def _others_decide(self) -> bool:
        """Whether anybody besides who asks may decide: elsewhere, nobody else could."""
        listed = self._config.approvers.policy is ApproverPolicy.LIST
        return listed or bool(self._access.admins())

    def _is_guest(self, call: ToolCall) -> bool:
        return self._access.role(call.requester, call.place) is PersonRole.GUEST

    def shows_cards(self, place: Place) -> bool:
        """Say whether people can be asked on the platform of a place."""
        renderer = self._renderers.get(place.platform)
        return renderer is not None and renderer.capabilities.buttons

    async def _home(self, call: ToolCall) -> Routed | None:
        """Find the home channel of the account of the call, else of its platform, else any."""
        own = call.place
        others = [platform for platform in self._renderers if platform != own.platform]
        for name in (f"{own.platform}@{own.account}", own.platform, *others):
            found = await self._channels.resolve(name)
            if isinstance(found, Ambiguous):
                found = await self._channels.resolve(found.candidates[0])
            if isinstance(found, Channel) and self.shows_cards(found.place):
                return Routed(shown_in=self._as_seen_by(call, found.place))
        return None

    async def _admins(self, call: ToolCall) -> Routed | None:
        """Find the admins' direct chats, those of the account of the call first."""
        chats: list[Place] = []
        for admin in self._access.admins():
            mine = await self._direct(admin, call)
            chats += mine[:1]
        chats.sort(key=lambda place: not self._is_near(place, call))
        if not chats:
            return None
        first, *rest = (self._as_seen_by(call, chat) for chat in chats)
        return Routed(shown_in=first, told=tuple(rest))

    async def _direct(self, admin: Actor, call: ToolCall) -> Sequence[Place]:
        known = await self._channels.direct(admin, limit=MAX_CHATS)
        found = [place for place in known if self.shows_cards(place)]
        return sorted(found, key=lambda place: not self._is_near(place, call))

    def _is_near(self, place: Place, call: ToolCall) -> bool:
        return (place.platform, place.account) == (call.place.platform, call.place.account)

    def _as_seen_by(self, call: ToolCall, place: Place) -> Place:
        """Keep the call's own conversation where both show the same chat."""
        return call.place if place.shows_same_as(call.place) else place
