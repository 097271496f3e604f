"""Whose words may be pushed to another agent: people who may talk by themselves, not only as one of a room."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gateway.app.platforms import listed_people, with_profile
from gateway.domain.ids import Actor, Place
from gateway.domain.operations.pairing import PairingState
from gateway.ports import Pairings
from gateway.runtime.access import Access
from gateway.runtime.config import PersonRole

if TYPE_CHECKING:
    from gateway.config.home import Home
    from gateway.config.schema import Config

MAX_PAIRED: Final = 1_000

_TRUSTED: Final = frozenset({PersonRole.USER, PersonRole.ADMIN})


class TrustedSenders:
    """Judges by the configured lists, and by who is paired now. A list of everybody trusts nobody."""

    def __init__(
        self, config: "Config", pairings: Pairings, *, home: "Home", environ: Mapping[str, str]
    ) -> None:
        people = listed_people(config, with_profile(home, environ))
        self._access = Access(config.access, allowed=people)
        self._pairings = pairings

    async def trusts(self, actor: Actor, place: Place) -> bool:
        """Whether somebody is listed by their own id, or paired on the account of `place`."""
        if actor.is_bot or actor.is_chat:
            return False
        if self._access.role(actor) in _TRUSTED:
            return True
        key = (place.platform, place.account, actor.id)
        paired = await self._pairings.page(PairingState.APPROVED, limit=MAX_PAIRED)
        return any((each.platform, each.account, each.user) == key for each in paired)
