"""Who may do what: pure rules over immutable ids, deny by default. Never looks at names."""

import fnmatch
from collections.abc import Mapping
from typing import Final, assert_never

from gateway.domain.ids import Actor, Place
from gateway.domain.question import ApproverPolicy, Question
from gateway.runtime.commands import find_command
from gateway.runtime.config import AccessConfig, AccessRule, PersonRole

_RANK: Final = {
    PersonRole.STRANGER: 0,
    PersonRole.GUEST: 1,
    PersonRole.USER: 2,
    PersonRole.ADMIN: 3,
}


class Access:
    """Judges people; `allowed` are the user ids of each platform that may talk.

    `extra_admins` are admins besides the configured ones (whoever sits at the terminal);
    `operators` too, and they may talk anywhere (whoever has the control socket).
    """

    def __init__(
        self,
        config: AccessConfig,
        *,
        extra_admins: frozenset[str] = frozenset(),
        operators: frozenset[str] = frozenset(),
        allowed: Mapping[str, frozenset[str]],
    ) -> None:
        self._config = config
        self._operators = operators
        self._admins = config.admins | extra_admins | operators
        self._allowed = allowed

    def role(self, actor: Actor) -> PersonRole:
        """Return what somebody is; another bot is a stranger unless it is listed like a person."""
        who = str(actor)
        if not actor.platform or not actor.id:
            return PersonRole.STRANGER
        if who in self._admins:
            return PersonRole.ADMIN
        if who in self._config.roles.get(PersonRole.GUEST, frozenset()):
            return PersonRole.GUEST
        if actor.id in self._allowed.get(actor.platform, frozenset()):
            return PersonRole.USER
        if who in self._config.roles.get(PersonRole.USER, frozenset()):
            return PersonRole.USER
        return PersonRole.STRANGER

    def may_talk(self, actor: Actor, place: Place) -> bool:
        """Say whether a message of `actor` in `place` may start a turn."""
        if str(actor) in self._operators:
            return True
        return actor.platform == place.platform and self.role(actor) is not PersonRole.STRANGER

    def may_decide(self, question: Question, actor: Actor) -> bool:
        """Say whether `actor` may answer `question`: an admin, or whom its frozen rule names."""
        role = self.role(actor)
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

    def may_grant_always(self, actor: Actor) -> bool:
        """Say whether `actor` may make a rule that outlives the session."""
        return self.role(actor) is PersonRole.ADMIN

    def may_command(self, actor: Actor, name: str, *, place: Place | None = None) -> bool:
        """Say whether `actor` may give the command; an unknown one nobody may."""
        command = find_command(name)
        if command is None:
            return False
        role = self.role(actor)
        if role in {PersonRole.ADMIN, PersonRole.STRANGER}:
            return role is PersonRole.ADMIN
        rule = self._rule(role, actor, place)
        if rule is not None and rule.commands is not None:
            return command.name in rule.commands
        return _RANK[role] >= _RANK[command.role]

    def may_use(self, actor: Actor, *, alias: str, server: str, place: Place | None) -> bool:
        """Say whether `actor` may call a tool in `place`, by the first rule that matches."""
        role = self.role(actor)
        if role is PersonRole.STRANGER:
            return False
        rule = self._rule(role, actor, place)
        if rule is None or (rule.allow is None and rule.deny is None):
            return role is not PersonRole.GUEST
        names = (alias, f"mcp-{server}")
        if _matches(names, rule.deny or ()):
            return False
        if rule.allow is None:
            return role is not PersonRole.GUEST
        return _matches(names, rule.allow)

    def _rule(self, role: PersonRole, actor: Actor, place: Place | None) -> AccessRule | None:
        platform = place.platform if place else actor.platform
        channel = f"{place.platform}:{place.chat}" if place else None
        for rule in self._config.tools:
            match = rule.match
            if match.role not in {None, role} or match.platform not in {None, platform}:
                continue
            if match.channel not in {None, channel}:
                continue
            return rule
        return None


def _matches(names: tuple[str, ...], globs: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for name in names for glob in globs)
