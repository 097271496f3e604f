"""Which commands a platform offers to whom: what a person of each scope may use by the access rules."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.domain.ids import Account, Actor, ChatType, Place
from gateway.runtime.access import Access
from gateway.runtime.commands import COMMANDS, Command
from gateway.runtime.config import AccessConfig, PersonRole

MAX_MENUS: Final = 100
"""Each costs a platform a call or two at the start."""
_ANY_CHAT: Final = "*"
"""No platform calls a chat so; rules about single chats do not match it."""

Offered: TypeAlias = tuple[Command, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Menus:
    """What users see in private chats and in groups, and where single chats or people see other.

    `people` are by user id, in private; `members` by group and user id.
    """

    private: Offered
    groups: Offered
    chats: Mapping[str, Offered]
    people: Mapping[str, Offered]
    members: Mapping[tuple[str, str], Offered]


def menus_of(config: AccessConfig, account: Account, *, groups: Iterable[str]) -> Menus:
    """Return the menus of an account; what is as in its wider scope is left out."""
    access = Access(config)
    platform, name = account

    def dm(user: str) -> Place:
        return Place(platform=platform, account=name, chat=user, chat_type=ChatType.DM)

    def group(chat: str) -> Place:
        return Place(platform=platform, account=name, chat=chat, chat_type=ChatType.GROUP)

    private = _of_role(access, dm(_ANY_CHAT))
    general = _of_role(access, group(_ANY_CHAT))
    chats = {chat: _of_role(access, group(chat)) for chat in sorted(groups)}
    people: dict[str, Offered] = {}
    members: dict[tuple[str, str], Offered] = {}
    for person in sorted(_listed(config, platform)):
        actor = Actor(platform=platform, id=person)
        people[person] = _of_person(access, actor, dm(person))
        for chat in chats:
            members[chat, person] = _of_person(access, actor, group(chat))
    kept = {chat: item for chat, item in chats.items() if item != general}
    left = MAX_MENUS - len(kept)
    people = dict([(key, item) for key, item in people.items() if item != private][:left])
    left -= len(people)
    other = [(key, item) for key, item in members.items() if item != chats[key[0]]]
    return Menus(
        private=private,
        groups=general,
        chats=kept,
        people=people,
        members=dict(other[: max(left, 0)]),
    )


def _listed(config: AccessConfig, platform: str) -> set[str]:
    """Return the ids of the people of a platform who are something other than a user."""
    guests = config.roles.get(PersonRole.GUEST, frozenset())
    people = [Actor.parse(person) for person in (*config.admins, *guests)]
    return {actor.id for actor in people if actor.platform == platform and actor.id}


def _of_role(access: Access, place: Place) -> Offered:
    return tuple(
        item for item in COMMANDS if access.role_may_command(PersonRole.USER, item.name, place)
    )


def _of_person(access: Access, actor: Actor, place: Place) -> Offered:
    return tuple(item for item in COMMANDS if access.may_command(actor, item.name, place=place))
