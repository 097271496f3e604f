"""The driver of a whole server: its bots, people and chats, its faults, its clock, its counters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.fakes.telegram.driver import WAIT_SECONDS, ChatDriver
from tests.fakes.telegram.faults import Fault
from tests.fakes.telegram.rates import Rates
from tests.fakes.telegram.server import Server
from tests.fakes.telegram.service import Call, Service
from tests.fakes.telegram.state import Bot, BotStatus, Chat, ChatKind, Person, Update

TOKEN: Final = "123456789:AAF-fake_token_of_a_test_only_00000"
_FIRST_SUPERGROUP: Final = -1_001_000_000_000
_FIRST_GROUP: Final = -5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BotDriver:
    """One bot account, and the updates waiting for it."""

    service: Service
    state: Bot

    @property
    def token(self) -> str:
        return self.state.token

    @property
    def pending(self) -> list[Update]:
        """What it has not confirmed."""
        return list(self.state.updates)

    def redeliver(self, *, last: int = 1, times: int = 1) -> None:
        """Deliver its last confirmed updates again, under their old ids."""
        again = self.state.handed_out[-last:]
        for update in again:
            update.repeats = times
        self.state.updates = again + self.state.updates
        self.service.changed()

    def reverse_pending(self) -> None:
        """Let what waits arrive in the opposite order; the ids still rise."""
        updates = self.state.updates
        contents = [(u.kind, u.payload, u.queue) for u in reversed(updates)]
        for update, (kind, payload, queue) in zip(updates, contents, strict=True):
            update.kind, update.payload, update.queue = kind, payload, queue


@dataclass(slots=True, kw_only=True)
class Town:
    """Everything a test does to the service, and all it can ask."""

    service: Service
    server: Server
    _next: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def base_url(self) -> str:
        """What the adapter's `base_url` is set to."""
        return self.server.url

    @property
    def calls(self) -> list[Call]:
        return self.service.calls

    @property
    def violations(self) -> list[str]:
        return self.service.violations

    def bot(
        self,
        token: str = TOKEN,
        *,
        username: str = "hermes_test_bot",
        name: str = "Hermes",
        reads_all: bool = False,
        topics_in_private: bool = False,
    ) -> BotDriver:
        """Return the account behind a token, made now when it is new."""
        bots = self.service.world.bots
        if token not in bots:
            bots[token] = Bot(
                token=token,
                id=int(token.partition(":")[0]),
                username=username,
                first_name=name,
                reads_all=reads_all,
                topics_in_private=topics_in_private,
            )
        return BotDriver(service=self.service, state=bots[token])

    def user(
        self, user_id: int, name: str, *, username: str | None = None, is_bot: bool = False
    ) -> Person:
        person = Person(id=user_id, first_name=name, username=username, is_bot=is_bot)
        return self.service.world.people.setdefault(user_id, person)

    # A chat is what one bot sees of it: two bots in one group are two chats here.
    def private(
        self, user: Person, *, bot: BotDriver | None = None, started: bool = True
    ) -> ChatDriver:
        """Return the private chat; not `started` is one the person never wrote in."""
        return self._chat(bot, Chat(id=user.id, kind="private", started=started), [user])

    def group(
        self, title: str, *people: Person, chat_id: int | None = None, bot: BotDriver | None = None
    ) -> ChatDriver:
        """Return a small group; it counts its messages together with the private chats."""
        number = self._number("group", _FIRST_GROUP, chat_id)
        return self._chat(bot, Chat(id=number, kind="group", title=title), list(people))

    def supergroup(
        self,
        title: str,
        *people: Person,
        chat_id: int | None = None,
        forum: bool = False,
        username: str | None = None,
        bot_status: BotStatus = "member",
        bot: BotDriver | None = None,
    ) -> ChatDriver:
        return self._broad("supergroup", title, people, chat_id, forum, username, bot_status, bot)

    def channel(
        self,
        title: str,
        *people: Person,
        chat_id: int | None = None,
        username: str | None = None,
        bot_status: BotStatus = "administrator",
        bot: BotDriver | None = None,
    ) -> ChatDriver:
        return self._broad("channel", title, people, chat_id, False, username, bot_status, bot)

    def chat(self, chat_id: int, *, bot: BotDriver | None = None) -> ChatDriver:
        """Return a chat there is already."""
        owner = (bot or self.bot()).state
        state = owner.chats[chat_id]
        world = self.service.world
        members = [chat_id] if state.kind == "private" else list(state.members)
        people = [world.people[member] for member in members if member in world.people]
        return ChatDriver(service=self.service, bot=owner, state=state, people=people)

    def fail(self, *faults: Fault) -> None:
        """Let these go wrong, in this order."""
        self.service.faults.ahead.extend(faults)

    def heal(self) -> None:
        """Forget the faults that lie ahead and end every hang."""
        self.service.faults.ahead.clear()
        self.service.released.set()
        self.service.released = type(self.service.released)()

    def set_rates(self, rates: Rates) -> None:
        self.service.meter.rates = rates

    def advance(self, seconds: float) -> None:
        self.service.advance(seconds)

    async def down(self) -> None:
        """Stop listening, as the whole service unreachable."""
        await self.server.down()

    async def up(self) -> None:
        await self.server.up()

    def count(self, method: str, *, chat: int | None = None, ok: bool | None = None) -> int:
        """Return how often a method was called; `ok` counts only those that worked (or not)."""
        return len(self.called(method, chat=chat, ok=ok))

    def called(self, method: str, *, chat: int | None = None, ok: bool | None = None) -> list[Call]:
        return [
            call
            for call in self.calls
            if call.method.lower() == method.lower()
            and (chat is None or call.chat == chat)
            and (ok is None or (call.status == 200) is ok)
        ]

    async def until(
        self, holds: Callable[[], Any], *, seconds: float = WAIT_SECONDS, what: str = "it"
    ) -> Any:
        """Return what `holds()` says once it is true; looked at on every change."""
        return await self.service.until(holds, seconds=seconds, what=what)

    def _broad(
        self,
        kind: ChatKind,
        title: str,
        people: tuple[Person, ...],
        chat_id: int | None,
        forum: bool,
        username: str | None,
        bot_status: BotStatus,
        bot: BotDriver | None,
    ) -> ChatDriver:
        chat = Chat(
            id=self._number(kind, _FIRST_SUPERGROUP, chat_id),
            kind=kind,
            title=title,
            forum=forum,
            username=username,
            bot_status=bot_status,
            # The first message says that the chat was made.
            last_message=1,
        )
        return self._chat(bot, chat, list(people))

    def _chat(self, bot: BotDriver | None, chat: Chat, people: list[Person]) -> ChatDriver:
        owner = (bot or self.bot()).state
        state = owner.chats.setdefault(chat.id, chat)
        if state.kind not in ("private", "channel"):
            state.members.update({person.id: "member" for person in people})
        return ChatDriver(service=self.service, bot=owner, state=state, people=people)

    def _number(self, kind: str, first: int, given: int | None) -> int:
        if given is not None:
            return given
        kind = "group" if kind == "group" else "broad"
        self._next[kind] = self._next.get(kind, 0) + 1
        return first - self._next[kind]
