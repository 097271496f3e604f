"""Telegram under the suite, over the fake Bot API."""

import mimetypes
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from adapters.telegram.markup import TelegramRenderer
from tests.adapters.conformance.platform import (
    WAIT_SECONDS,
    Ability,
    Chat,
    Person,
    Platform,
    Scene,
    Shown,
    T,
)
from tests.fakes.telegram import (
    UNLIMITED,
    ChatDriver,
    Fault,
    Message,
    Town,
    Trouble,
    flood,
    telegram_server,
)
from tests.fakes.telegram import Press as Query
from tests.fakes.telegram.state import Person as Account
from tests.fakes.telegram.text import part, units
from tests.fakes.telegram.town import BotDriver

FIRST_PERSON: Final = 111
SENDS: Final = ("sendMessage", "sendDocument", "editMessageText")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Press:
    query: Query

    async def told(self) -> str:
        return (await self.query.answered()).text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Button:
    chat: "_Chat"
    message: Message
    data: str

    async def press(self, *, by: Person | None = None) -> _Press:
        account = self.chat.account(by)
        return _Press(
            query=await self.chat.driver.press(data=self.data, message=self.message, by=account)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    chat: "_Chat"
    message: Message

    @property
    def id(self) -> str:
        return str(self.message.id)

    @property
    def ours(self) -> bool:
        return self.message.by_bot

    @property
    def text(self) -> str:
        return self.message.text

    @property
    def labels(self) -> Sequence[str]:
        return self.message.labels

    @property
    def answers(self) -> str | None:
        return None if self.message.reply_to is None else str(self.message.reply_to)

    @property
    def pings(self) -> Sequence[str]:
        return [
            str(entity["user"]["id"]) if "user" in entity else part(self.message.text, entity)
            for entity in self.message.entities
            if entity["type"] in ("mention", "text_mention")
        ]

    @property
    def code(self) -> Sequence[str]:
        return [
            part(self.message.text, entity)
            for entity in self.message.entities
            if entity["type"] in ("pre", "code")
        ]

    @property
    def files(self) -> Sequence[tuple[str, bytes]]:
        kinds = [
            shown[-1] if kind == "photo" else shown for kind, shown in self.message.media.items()
        ]
        kept = [self.chat.scene.town.service.world.files[shown["file_id"]] for shown in kinds]
        return [(file.name, file.data) for file in kept]

    def button(self, label: str) -> _Button:
        data = self.message.data_of(label)
        assert data is not None, f"no button {label!r} under {self.text!r}: {self.labels}"
        return _Button(chat=self.chat, message=self.message, data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chat(Chat):
    scene: "_Scene"
    driver: ChatDriver

    @property
    def id(self) -> str:
        return str(self.driver.id)

    @property
    def shown(self) -> Sequence[Shown]:
        messages = [m for m in self.driver.messages if not m.notice]
        if self.driver.topic is None:
            messages = [m for m in messages if m.thread not in self.driver.state.topics]
        return [_Shown(chat=self, message=message) for message in messages]

    async def say(
        self,
        text: str,
        *,
        by: Person | None = None,
        calling: bool = False,
        answering: Shown | None = None,
    ) -> Shown:
        said = await self.driver.say(
            f"@{self.scene.bot.state.username} {text}" if calling else text,
            by=self.account(by),
            reply_to=None if answering is None else self._message(answering),
        )
        return _Shown(chat=self, message=said)

    async def attach(self, name: str, data: bytes, *, saying: str = "", size: int = 0) -> Shown:
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        said = await self.driver.send_file(
            "photo" if media_type.startswith("image/") else "document",
            data,
            name=name,
            media_type=media_type,
            caption=saying,
            size=size or None,
        )
        return _Shown(chat=self, message=said)

    async def give(self, name: str, argument: str = "", *, by: Person | None = None) -> None:
        # What the menu puts into the chat: in a group it names the bot.
        to = "" if self.driver.state.kind == "private" else f"@{self.scene.bot.state.username}"
        command = f"/{name.replace('-', '_')}{to} {argument}".rstrip()
        await self.driver.say(command, by=self.account(by))

    async def change(self, message: Shown, text: str) -> None:
        await self.driver.edit(self._message(message), text)

    async def thread(self, name: str) -> Chat:
        return _Chat(scene=self.scene, driver=await self.driver.open_topic(name))

    async def fill(self, answers: Mapping[str, str | None], *, by: Person | None = None) -> None:
        for label, answer in answers.items():
            asked = await self._asked(label)
            if answer is None or answer in asked.labels:
                await asked.button(answer or "Skip").press(by=by)
            else:
                await self.driver.say(answer, by=self.account(by), reply_to=self._prompt(asked))

    async def mistake(self, label: str, answer: str) -> str:
        asked = await self._asked(label)
        await self.driver.say(answer, reply_to=self._prompt(asked))
        again = await self.found(
            lambda m: m.ours and int(m.id) > int(asked.id) and label in m.text and m.labels,
            f"{label!r} asked again",
        )
        return again.text

    async def _asked(self, label: str) -> _Shown:
        """Return the open card that asks for a field."""

        def newest() -> _Shown | None:
            cards = [m for m in self.driver.messages if m.labels]
            found = cards and label in cards[-1].text and "Submit" not in cards[-1].labels
            return _Shown(chat=self, message=cards[-1]) if found else None

        found = await self.until(newest, what=f"a card that asks for {label!r}")
        assert found is not None
        return found

    def _prompt(self, card: _Shown) -> Message:
        """Return what the client of the person opens its reply field for: a prompt, or the card."""
        later = [m for m in self.driver.messages if m.reply_to == card.message.id]
        prompts = [m for m in later if m.markup and "force_reply" in m.markup]
        return prompts[-1] if prompts else card.message

    @property
    def draft(self) -> str:
        return self.driver.draft or ""

    async def until(self, holds: Callable[[], T], *, what: str) -> T:
        return await self.scene.town.until(holds, seconds=WAIT_SECONDS, what=what)

    def account(self, by: Person | None) -> Account | None:
        return None if by is None else self.scene.accounts[by.id]

    def _message(self, shown: Shown) -> Message:
        return self.driver.state.messages[int(shown.id)]


@dataclass(slots=True, kw_only=True)
class _Scene(Scene):
    town: Town
    bot: BotDriver
    accounts: dict[str, Account] = field(default_factory=dict[str, Account])

    @property
    def platform(self) -> Platform:
        return TELEGRAM

    @property
    def section(self) -> Mapping[str, object]:
        return {"token": self.bot.token, "base_url": self.town.base_url}

    def person(self, name: str) -> Person:
        return self._account(name, is_bot=False)

    def namesake(self, person: Person) -> Person:
        return self._join(person.name, is_bot=False)

    def robot(self, name: str) -> Person:
        return self._account(name, is_bot=True)

    def direct(self, person: Person) -> Chat:
        return self._chat(self.town.private(self.accounts[person.id], bot=self.bot))

    def group(self, *people: Person) -> Chat:
        return self._group(people, forum=False)

    def threaded(self, *people: Person) -> Chat:
        return self._group(people, forum=True)

    async def heard(self) -> None:
        await self.town.until(
            lambda: not self.bot.pending, seconds=WAIT_SECONDS, what="everything to be confirmed"
        )

    def attempts(self, chat: Chat) -> int:
        return sum(self.town.count(method, chat=int(chat.id)) for method in SENDS)

    def deliver_again(self, *, last: int = 1, times: int = 1) -> None:
        self.bot.redeliver(last=last, times=times)

    def park(self, chat: Chat, *, seconds: int) -> None:
        self.town.fail(flood("sendMessage", seconds, chat=int(chat.id)))

    def slow(self, chat: Chat, *, seconds: float) -> None:
        self._trouble(chat, Trouble.SLOW, seconds=seconds)

    def unanswered(self, chat: Chat, *, arrives: bool) -> None:
        self._trouble(chat, Trouble.CUT_AFTER if arrives else Trouble.CUT_BEFORE)

    @asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        await self.town.down()
        try:
            yield
        finally:
            await self.town.up()

    def _trouble(self, chat: Chat, trouble: Trouble, *, seconds: float = 0) -> None:
        fault = Fault(trouble=trouble, method="sendMessage", chat=int(chat.id), seconds=seconds)
        self.town.fail(fault)

    def _account(self, name: str, *, is_bot: bool) -> Person:
        known = next((a for a in self.accounts.values() if a.first_name == name), None)
        if known is not None:
            return Person(id=str(known.id), name=name)
        return self._join(name, is_bot=is_bot)

    def _join(self, name: str, *, is_bot: bool) -> Person:
        number = FIRST_PERSON * (len(self.accounts) + 1)
        username = f"{name.lower()}_person"
        if any(account.username == username for account in self.accounts.values()):
            username += f"_{number}"
        self.accounts[str(number)] = self.town.user(number, name, username=username, is_bot=is_bot)
        return Person(id=str(number), name=name)

    def _group(self, people: Sequence[Person], *, forum: bool) -> Chat:
        members = [self.accounts[person.id] for person in people]
        return self._chat(
            self.town.supergroup(
                "Team", *members, forum=forum, bot_status="administrator", bot=self.bot
            )
        )

    def _chat(self, driver: ChatDriver) -> Chat:
        return _Chat(scene=self, driver=driver)


@asynccontextmanager
async def _open() -> AsyncGenerator[Scene]:
    async with telegram_server(rates=UNLIMITED) as town:
        yield _Scene(town=town, bot=town.bot())


TELEGRAM: Final = Platform(
    name="telegram",
    renderer=TelegramRenderer(),
    units=units,
    lacks=frozenset({Ability.MODALS}),
    everybody=("@ana_person", "@ben_person", "[Ana](tg://user?id=111)"),
    visible=("@ana_person", "@ben_person", "Ana"),
    open=_open,
)
