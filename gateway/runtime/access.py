"""Who may do what: pure rules over immutable ids, deny by default. Never looks at names."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from gateway.domain.ids import Account, Actor, Place
from gateway.domain.question import ApproverPolicy, Question
from gateway.runtime.access_door import Door
from gateway.runtime.commands import Command, find_command, plain_name
from gateway.runtime.config import AccessConfig, AccessRule, PersonRole, RuleMatch
from gateway.runtime.toolsets import toolset_of

_RANK: Final = {
    PersonRole.STRANGER: 0,
    PersonRole.GUEST: 1,
    PersonRole.USER: 2,
    PersonRole.ADMIN: 3,
}


class Access:
    """Judges people; `allowed` are the user ids of each platform that may talk on any of its accounts.

    `doors` say who comes in by which account. `extra_admins` are admins besides the configured ones
    (whoever sits at the terminal); `operators` too, and they may talk anywhere (whoever has the
    control socket).
    """

    def __init__(
        self,
        config: AccessConfig,
        *,
        extra_admins: frozenset[str] = frozenset(),
        operators: frozenset[str] = frozenset(),
        allowed: Mapping[str, frozenset[str]] | None = None,
        doors: Mapping[Account, Door] | None = None,
    ) -> None:
        self._config = config
        self._operators = operators
        self._admins = config.admins | extra_admins | operators
        self._allowed = allowed or {}
        self._doors = doors or {}
        self._paired: set[tuple[str, str, str]] = set()

    def let_in(self, platform: str, account: str, user: str) -> None:
        """Admit somebody who was paired to the direct chats of an account."""
        self._paired.add((platform, account, user))

    def let_out(self, platform: str, account: str, user: str) -> None:
        """Admit them no more."""
        self._paired.discard((platform, account, user))

    def door(self, place: Place) -> Door | None:
        """Return what the account of a place says; None where only the operator comes in."""
        return self._doors.get((place.platform, place.account))

    def role(self, actor: Actor, place: Place | None = None) -> PersonRole:
        """Return what somebody is in `place`, or wherever they are listed by themselves.

        A group's list counts in that group, a pairing in direct chats alone. Another bot is a
        stranger unless its account allows bots and it is listed like a person.
        """
        who = str(actor)
        door = self.door(place) if place else None
        if not actor.platform or not actor.id:
            return PersonRole.STRANGER
        if actor.is_bot and door is not None and not door.allow_bots:
            return PersonRole.STRANGER
        if who in self._admins:
            return PersonRole.ADMIN
        if who in self._config.roles.get(PersonRole.GUEST, frozenset()):
            return PersonRole.GUEST
        if self._is_user(actor, place, door):
            return PersonRole.USER
        return PersonRole.STRANGER

    def _is_user(self, actor: Actor, place: Place | None, door: Door | None) -> bool:
        if actor.id in self._allowed.get(actor.platform, frozenset()):
            return True
        if str(actor) in self._config.roles.get(PersonRole.USER, frozenset()):
            return True
        if place is None or door is None or actor.platform != place.platform:
            return False
        if door.admits(actor, place):
            return True
        key = (place.platform, place.account, actor.id)
        return not actor.is_bot and door.is_direct(place) and key in self._paired

    def may_talk(self, actor: Actor, place: Place) -> bool:
        """Say whether a message of `actor` in `place` may start a turn."""
        if str(actor) in self._operators:
            return True
        if actor.platform != place.platform:
            return False
        return self.role(actor, place) is not PersonRole.STRANGER

    def may_decide(self, question: Question, actor: Actor) -> bool:
        """Say whether `actor` may answer `question`: an admin, or whom its frozen rule names.

        Whoever speaks for a whole chat may not: nobody knows who it is.
        """
        if actor.is_chat:
            return False
        role = self.role(actor, question.place)
        if role is PersonRole.ADMIN:
            return True
        policy = question.approvers.policy
        match policy:
            case ApproverPolicy.REQUESTER:
                return role is not PersonRole.STRANGER and str(actor) == str(question.requester)
            case ApproverPolicy.ADMINS:
                return False
            case ApproverPolicy.LIST:
                return str(actor) in question.approvers.ids
            case _:
                assert_never(policy)

    def admins(self) -> Sequence[Actor]:
        """Return the admins whom the configuration names."""
        return tuple(Actor.parse(person) for person in sorted(self._config.admins))

    def may_grant_always(self, actor: Actor) -> bool:
        """Say whether `actor` may make a rule that outlives the session."""
        return self.role(actor) is PersonRole.ADMIN

    def may_command(self, actor: Actor, name: str, *, place: Place | None = None) -> bool:
        """Say whether `actor` may give the command; an unknown one nobody may."""
        command = find_command(name)
        if command is None:
            return False
        return self._may(self.role(actor, place), command, *_names(actor, place))

    def role_may_command(self, role: PersonRole, name: str, place: Place) -> bool:
        """Say whether whoever has that role in `place` may give the command there."""
        command = find_command(name)
        return command is not None and self._may(role, command, *_names(None, place))

    def _may(
        self,
        role: PersonRole,
        command: Command,
        platforms: tuple[str, ...],
        channels: tuple[str, ...],
    ) -> bool:
        if role is PersonRole.STRANGER:
            return False
        rule = self._rule(role, platforms, channels)
        if rule is not None and rule.commands is not None:
            return any(fnmatch.fnmatchcase(command.name, plain_name(x)) for x in rule.commands)
        return _RANK[role] >= _RANK[command.role]

    def may_use(self, actor: Actor, *, alias: str, server: str, place: Place | None) -> bool:
        """Say whether `actor` may call a tool in `place`, by the first rule that matches."""
        role = self.role(actor, place)
        if role is PersonRole.STRANGER:
            return False
        rule = self._rule(role, *_names(actor, place))
        if rule is None or (rule.allow is None and rule.deny is None):
            return role is not PersonRole.GUEST
        names = (alias, toolset_of(server))
        if _matches(names, rule.deny or ()):
            return False
        if rule.allow is None:
            return role is not PersonRole.GUEST
        return _matches(names, rule.allow)

    def restricts(self, actor: Actor, place: Place | None) -> bool:
        """Say whether there may be a tool that `actor` may not use in `place`."""
        role = self.role(actor, place)
        if role not in {PersonRole.ADMIN, PersonRole.USER}:
            return True
        rule = self._rule(role, *_names(actor, place))
        return rule is not None and (rule.allow is not None or rule.deny is not None)

    def _rule(
        self, role: PersonRole, platforms: tuple[str, ...], channels: tuple[str, ...]
    ) -> AccessRule | None:
        for rule in self._config.tools:
            if _is_about(rule.match, role, platforms, channels):
                return rule
        return None


def _names(actor: Actor | None, place: Place | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a rule may call the platform and the channel of a place."""
    if place is None:
        return () if actor is None else (actor.platform,), ()
    platforms: tuple[str, ...] = (place.platform,)
    if place.account:
        platforms = (place.platform, f"{place.platform}@{place.account}")
    channels = [f"{platform}:{place.chat}" for platform in platforms]
    if place.thread:
        channels += [f"{channel}:{place.thread}" for channel in channels]
    return platforms, tuple(channels)


def _is_about(
    match: RuleMatch, role: PersonRole, platforms: tuple[str, ...], channels: tuple[str, ...]
) -> bool:
    return (
        match.role in {None, role}
        and match.platform in {None, *platforms}
        and match.channel in {None, *channels}
    )


def _matches(names: tuple[str, ...], globs: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for name in names for glob in globs)
