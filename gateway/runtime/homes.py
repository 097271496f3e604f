"""`/sethome`: makes a chat the one that hears what nobody asked for."""

from typing import Protocol

from gateway.domain.message import CommandGiven
from gateway.domain.operations.inbound import StoredInbound
from gateway.domain.operations.upkeep import SetHome
from gateway.runtime.command_replies import Replies


class HomeStore(Protocol):
    """Where home channels are kept."""

    async def set_home(self, home: SetHome) -> None: ...


class Homes:
    """Answers the command; the choice is a row, and stays whatever the configuration names."""

    def __init__(self, store: HomeStore) -> None:
        self._store = store

    @property
    def replies(self) -> Replies:
        """What answers its command."""
        return {"sethome": self.choose}

    async def choose(self, stored: StoredInbound, event: CommandGiven) -> str:
        """Make the chat of the command the home channel of its platform and account."""
        del stored
        await self._store.set_home(SetHome(place=event.place, by=event.sender))
        return (
            "This is the home channel now: notices of this gateway, and what is sent to "
            f"`{event.place.platform}` alone, come here."
        )
