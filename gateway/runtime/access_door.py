"""What one account of a platform says about who comes in and what is meant for us, as a value.

Whoever puts the process together fills it from the account's section; it knows no platform.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gateway.domain.ids import Actor, ChatType, Place
from gateway.domain.message import CommandGiven, InboundEvent, InboundMessage
from gateway.runtime.commands import find_command

EVERYBODY: Final = "*"
"""In `Door.people`: whoever writes may talk."""


class Strangers(StrEnum):
    """What a stranger's direct message gets: a pairing code, or silence."""

    PAIR = "pair"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRules:
    """What an allowlisted group has different; None is as the account says."""

    require_mention: bool | None = None
    strict_mention: bool | None = None


def _is_dm(place: Place) -> bool:
    return place.chat_type is ChatType.DM


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Closed as it is made: nobody is listed, strangers get silence, groups need a mention.

    `is_direct` tells whether a place is a chat with one person; `main_threads` are threads that are
    a group's own main part, so that being called there once is no invitation to follow.
    """

    people: frozenset[str] = frozenset()
    groups: Mapping[str, GroupRules] = field(default_factory=dict[str, GroupRules])
    strangers: Strangers = Strangers.IGNORE
    require_mention: bool = True
    strict_mention: bool = False
    allow_bots: bool = False
    is_direct: Callable[[Place], bool] = _is_dm
    main_threads: frozenset[str] = frozenset()

    def admits(self, actor: Actor, place: Place | None) -> bool:
        """Say whether somebody may talk in `place` by the lists: their own id, or their group's."""
        if actor.is_bot and not self.allow_bots:
            return False
        if actor.id in self.people or EVERYBODY in self.people:
            return True
        return place is not None and not self.is_direct(place) and place.chat in self.groups

    def can_be_invited(self, place: Place) -> bool:
        """Say whether a mention in `place` invites us to follow what is said there."""
        return bool(place.thread) and place.thread not in self.main_threads

    def is_meant(self, event: InboundEvent, *, follows: bool) -> bool:
        """Say whether an event is for us; `follows` when we were invited into its thread.

        Only messages and commands can be for others; a command of ours that names no bot is for us.
        """
        if not isinstance(event, InboundMessage | CommandGiven) or event.mentions_us:
            return True
        place = event.place
        rules = self.groups.get(place.chat, GroupRules())
        if self.is_direct(place) or not _or(rules.require_mention, self.require_mention):
            return True
        if isinstance(event, CommandGiven) and find_command(event.name) is not None:
            return True
        return follows and not _or(rules.strict_mention, self.strict_mention)


def _or(own: bool | None, general: bool) -> bool:
    return general if own is None else own
