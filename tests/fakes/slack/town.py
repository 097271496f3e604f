"""The driver of a whole server: its workspaces, people and channels, its sockets, faults and clock."""

from dataclasses import dataclass, field
from typing import Any, Final

from tests.fakes.slack.driver import WAIT_SECONDS, ChannelDriver
from tests.fakes.slack.faults import Fault
from tests.fakes.slack.outbox import Given, Socket
from tests.fakes.slack.server import Server, cut_socket
from tests.fakes.slack.service import Call, Service
from tests.fakes.slack.state import ALL_SCOPES, Channel, ChannelKind, Person, Team

T1: Final = "T1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDriver:
    """One workspace into which the app is installed."""

    service: Service
    state: Team

    @property
    def token(self) -> str:
        return self.state.token

    def user(self, user_id: str, name: str, *, is_bot: bool = False) -> Person:
        """Return the person of that id, made now when they are new."""
        person = Person(id=user_id, name=name, is_bot=is_bot)
        return self.state.people.setdefault(user_id, person)

    def direct(self, person: Person) -> ChannelDriver:
        """Return the chat of a person with the bot."""
        return self._channel(f"D{person.id[1:]}", "im", "", [person])

    def channel(
        self,
        channel_id: str,
        *people: Person,
        name: str = "",
        kind: ChannelKind = "channel",
        member: bool = True,
    ) -> ChannelDriver:
        """Return a channel; not a `member` the bot is not in it."""
        return self._channel(channel_id, kind, name or channel_id.lower(), people, member=member)

    def _channel(
        self, name: str, kind: ChannelKind, title: str, people: Any, *, member: bool = True
    ) -> ChannelDriver:
        members = [person.id for person in people] + ([self.state.bot_user] if member else [])
        new = Channel(id=name, kind=kind, name=title, members=members)
        state = self.state.channels.setdefault(name, new)
        return ChannelDriver(
            service=self.service, team=self.state, state=state, people=list(people)
        )


@dataclass(slots=True, kw_only=True)
class Town:
    """Everything a test does to the service, and all it can ask."""

    service: Service
    server: Server
    _teams: dict[str, TeamDriver] = field(default_factory=dict[str, TeamDriver])

    @property
    def base_url(self) -> str:
        """What the adapter's `base_url` is set to."""
        return f"{self.service.url}/api/"

    @property
    def app_token(self) -> str:
        return self.service.world.app_token

    @property
    def signing_secret(self) -> str:
        return self.service.world.signing_secret

    def team(self, team_id: str = T1, *, scopes: frozenset[str] = ALL_SCOPES) -> TeamDriver:
        """Return a workspace, made now when it is new."""
        teams = self.service.world.teams
        if team_id not in teams:
            teams[team_id] = Team(
                id=team_id,
                token=f"xoxb-{team_id}-test-token",
                bot_user=f"UBOT{team_id}",
                bot_id=f"BBOT{team_id}",
                scopes=scopes,
            )
        return TeamDriver(service=self.service, state=teams[team_id])

    # --- what was asked -----------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        return self.service.calls

    def count(self, method: str, *, channel: str = "", ok: bool = False) -> int:
        """Count the calls of a method, in a channel; `ok` those that succeeded."""
        return sum(
            call.method == method and channel in ("", call.channel) and (not ok or call.error == "")
            for call in self.calls
        )

    @property
    def pending(self) -> list[Given]:
        """What the app has not acknowledged and is still told."""
        return list(self.service.outbox.pending)

    @property
    def given(self) -> list[Given]:
        return self.service.outbox.given

    async def until(self, holds: Any, *, seconds: float = WAIT_SECONDS, what: str = "") -> Any:
        return await self.service.until(holds, seconds=seconds, what=what)

    async def connected(self, *, sockets: int = 1) -> None:
        await self.until(lambda: len(self.sockets) >= sockets, what=f"{sockets} open sockets")

    # --- what goes wrong ----------------------------------------------------------------

    @property
    def sockets(self) -> list[Socket]:
        return [socket for socket in self.service.outbox.sockets if not socket.ws.closed]

    def fail(self, fault: Fault) -> Fault:
        """Let a call go wrong."""
        self.service.faults.ahead.append(fault)
        return fault

    def release(self) -> None:
        """End every hang."""
        self.service.released.set()

    def advance(self, seconds: float) -> None:
        """Put the service's clock forward."""
        self.service.world.ahead += seconds
        self.service.changes.note()

    def again(self, *, last: int = 1) -> None:
        """Hand over once more the last things that were acknowledged, as they were."""
        taken = [given for given in self.given if given.answer is not None]
        for given in taken[-last:]:
            self.service.outbox.again(given)

    def drop(self) -> None:
        """Cut every socket."""
        for socket in self.sockets:
            cut_socket(socket)

    async def refresh(self, *, reason: str = "refresh_requested") -> None:
        """Ask the app to open its sockets anew."""
        for socket in self.sockets:
            await socket.ws.send_json({"type": "disconnect", "reason": reason})

    def freeze(self) -> None:
        """Let the open sockets answer no ping any more."""
        for socket in self.sockets:
            socket.frozen = True

    def deafen(self) -> None:
        """Let the open sockets look alive and bring nothing."""
        for socket in self.sockets:
            socket.deaf = True

    async def down(self) -> None:
        await self.server.down()

    async def up(self) -> None:
        await self.server.up()
