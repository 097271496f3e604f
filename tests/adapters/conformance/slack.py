"""Slack under the suite, over the fake workspace."""

import mimetypes
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from adapters.slack.markup import SlackRenderer
from adapters.slack.splitting import units
from tests.adapters.conformance.platform import (
    NOT_SENT,
    WAIT_SECONDS,
    Chat,
    Person,
    Platform,
    Scene,
    Shown,
    T,
)
from tests.fakes.slack import (
    ChannelDriver,
    Fault,
    Message,
    NotSent,
    Pressed,
    TeamDriver,
    Town,
    Trouble,
    limit,
    slack_server,
)
from tests.fakes.slack import Person as Account
from tests.fakes.slack.blocks import pings
from tests.fakes.slack.state import Json

SENDS: Final = ("chat.postMessage", "files.completeUploadExternal", "chat.update")
_FENCED: Final = re.compile(r"^(`{3,})[^\n]*\n(.*?)\n\1$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Press:
    chat: "_Chat"
    pressed: Pressed
    by: Account
    message: Message
    before: int
    edits: int

    async def told(self) -> str:
        await self.pressed.acknowledged()
        # What somebody is told alone comes when the press was worked off, if at all.
        find = self.chat.driver.whispers
        town = self.chat.scene.town

        def told() -> bool:
            return len(find(self.by.id)) > self.before

        def over() -> bool:
            return told() or len(self.message.past) > self.edits

        await town.until(over, seconds=WAIT_SECONDS, what="an answer to the press")
        with suppress(AssertionError):
            await town.until(told, seconds=0.5)
        return "\n".join(find(self.by.id)[self.before :])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Button:
    chat: "_Chat"
    message: Message
    element: Json

    async def press(self, *, by: Person | None = None) -> _Press:
        await self.chat.scene.town.connected()
        account = self.chat.account(by)
        before = len(self.chat.driver.whispers(account.id))
        edits = len(self.message.past)
        pressed = self.chat.driver.press_element(self.element, message=self.message, by=account)
        return _Press(
            chat=self.chat,
            pressed=pressed,
            by=account,
            message=self.message,
            before=before,
            edits=edits,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    chat: "_Chat"
    message: Message

    @property
    def id(self) -> str:
        return self.message.ts

    @property
    def ours(self) -> bool:
        return self.message.by_bot

    @property
    def text(self) -> str:
        return self.chat.driver.read(self.message)

    @property
    def labels(self) -> Sequence[str]:
        return self.message.labels

    @property
    def answers(self) -> str | None:
        return self.message.thread_ts or None

    @property
    def pings(self) -> Sequence[str]:
        return pings(self.message.blocks, self.message.text)

    @property
    def code(self) -> Sequence[str]:
        found = [b["text"] for b in self.message.blocks if b["type"] == "markdown"]
        return [match[2] for text in found for match in _FENCED.finditer(text)]

    @property
    def files(self) -> Sequence[tuple[str, bytes]]:
        kept = [self.chat.driver.team.files[name] for name in self.message.files]
        return [(file.name, file.data) for file in kept]

    def button(self, label: str) -> _Button:
        element = next((e for e in self.message.elements if e["text"]["text"] == label), None)
        assert element is not None, f"no button {label!r} under {self.text!r}: {self.labels}"
        return _Button(chat=self.chat, message=self.message, element=element)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chat(Chat):
    """`whole`: threads that a reply opens are seen with the channel, as in a plain group."""

    scene: "_Scene"
    driver: ChannelDriver
    whole: bool = False

    @property
    def id(self) -> str:
        return self.driver.id

    @property
    def shown(self) -> Sequence[Shown]:
        found = self.driver.everything if self.whole else self.driver.messages
        return [_Shown(chat=self, message=m) for m in found]

    async def say(
        self,
        text: str,
        *,
        by: Person | None = None,
        calling: bool = False,
        answering: Shown | None = None,
    ) -> Shown:
        driver = self.driver
        if answering is not None:
            # A reply on Slack goes into the thread of what it answers.
            answered = driver.state.messages[answering.id]
            driver = driver.inside(driver.state.messages[answered.thread_ts or answered.ts])
        said = driver.say(text, by=self.account(by), calling=calling)
        return _Shown(chat=self, message=said)

    async def attach(self, name: str, data: bytes, *, saying: str = "", size: int = 0) -> Shown:
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        stored = self.driver.upload(name, data, media_type=media_type, size=size or None)
        return _Shown(chat=self, message=self.driver.say(saying, files=[stored]))

    async def give(self, name: str, argument: str = "", *, by: Person | None = None) -> None:
        # A command comes once; while nobody listens Slack says so to whoever gives it.
        await self.scene.town.connected()
        self.driver.command(f"{name} {argument}".strip(), by=self.account(by))

    async def change(self, message: Shown, text: str) -> None:
        self.driver.edit(self.driver.state.messages[message.id], text)

    async def thread(self, name: str) -> Chat:
        # Begun by somebody nobody listens to: what opens it is no message for us.
        root = self.driver.say(name, by=self.scene.accounts[self.scene.robot("Root").id])
        return _Chat(scene=self.scene, driver=self.driver.inside(root))

    async def fill(self, answers: Mapping[str, str | None], *, by: Person | None = None) -> None:
        given = {label: answer or "" for label, answer in answers.items()}
        for label in await self._ask(next(iter(given)), given, by=by):
            # One press answered a question that needs no modal.
            given.pop(label)
        if given:
            await self._send(given, by=by)

    async def mistake(self, label: str, answer: str) -> str:
        await self._ask(label, {}, by=None)
        before, text = self._newest().id, self._newest().text
        try:
            await self._send({label: answer}, by=None)
        except NotSent as error:
            return f"{NOT_SENT}{error}"
        await self.until(
            lambda: self._newest().id != before or self._newest().text != text, what="it again"
        )
        return self._newest().text

    def _newest(self) -> _Shown:
        cards = [m for m in self.driver.messages if m.labels and m.by_bot]
        return _Shown(chat=self, message=cards[-1])

    async def _ask(
        self, label: str, given: Mapping[str, str], *, by: Person | None
    ) -> Sequence[str]:
        """Get the card that asks for a field; return the fields that a press of it answered."""

        def asked() -> _Shown | None:
            cards = [m for m in self.driver.messages if m.labels and m.by_bot]
            card = _Shown(chat=self, message=cards[-1]) if cards else None
            return card if card and ("Submit" in card.labels or label in card.text) else None

        card = await self.until(asked, what=f"a card that asks for {label!r}")
        assert card is not None
        if "Answer" in card.labels:
            return ()
        if "Edit" in card.labels:
            await card.button("Edit").press(by=by)
            await self.until(lambda: "Edit" not in self._newest().labels, what="what to edit")
            field = next((name for name in self._newest().labels if name == label), None)
            if field is not None:
                await self._newest().button(field).press(by=by)
            await self.until(lambda: "Back" not in self._newest().labels, what="the field")
            return await self._ask(label, given, by=by)
        answer = given.get(label)
        if answer is None:
            return ()
        await card.button(answer or "Skip").press(by=by)
        return (label,)

    async def _send(self, given: Mapping[str, str], *, by: Person | None) -> None:
        account = self.account(by)
        for view in self.scene.town.service.world.views.values():
            # Whoever opens a modal sees no other one.
            view.open = view.open and view.user != account.id
        await (await self._newest().button("Answer").press(by=by)).pressed.acknowledged()
        modal = await self.driver.modal(by=account)
        before = self._newest()
        seen = (before.id, before.text)
        chosen = {label: _native(modal.body, label, text) for label, text in given.items()}
        kept = {label: value for label, value in chosen.items() if value is not None}
        await self.driver.submit(modal, {**_placeholders(modal.body, given), **kept})
        await self.until(
            lambda: (self._newest().id, self._newest().text) != seen, what="the next card"
        )

    async def until(self, holds: Callable[[], T], *, what: str) -> T:
        town, deadline = self.scene.town, time.monotonic() + WAIT_SECONDS
        while not (found := holds()):
            assert time.monotonic() < deadline, f"not within {WAIT_SECONDS:g} s: {what}"
            # Not everything that is waited for happens on Slack.
            await town.service.changes.next(seconds=0.05)
        return found

    def account(self, by: Person | None) -> Account:
        return self.driver.people[0] if by is None else self.scene.accounts[by.id]


_VALID: Final = {
    "email_text_input": "ana@example.com",
    "number_input": "1",
    "datepicker": "2026-01-31",
}


def _native(view: Json, label: str, answer: str) -> str | list[str] | None:
    """Return an answer as a native input has it; None leaves the default that is in there."""
    if answer.startswith("Use default: "):
        return None
    block = next(b for b in view["blocks"] if label in b["label"]["text"])
    options = [option["text"]["text"] for option in block["element"].get("options", ())]
    if not options or answer in options or not answer:
        return answer
    parts = [part.strip() for part in answer.split(",")]
    picked = [
        options[int(part) - 1] if part.isdecimal() and 0 < int(part) <= len(options) else part
        for part in parts
    ]
    return picked if "multi" in block["element"]["type"] else picked[0]


def _placeholders(view: Json, given: Mapping[str, str]) -> dict[str, str]:
    """Return something for every other input that must not be empty, so that it can be sent."""
    found: dict[str, str] = {}
    for block in view["blocks"]:
        label, element = block["label"]["text"], block["element"]
        full = any(key.startswith("initial_") for key in element)
        if block["optional"] or full or any(name in label for name in given):
            continue
        options = element.get("options")
        first = options[0]["text"]["text"] if options else "x" * element.get("min_length", 1)
        found[label] = str(_VALID.get(element["type"], first))
    return found


@dataclass(slots=True, kw_only=True)
class _Scene(Scene):
    town: Town
    team: TeamDriver
    accounts: dict[str, Account] = field(default_factory=dict[str, Account])
    groups: int = 0

    @property
    def platform(self) -> Platform:
        return SLACK

    @property
    def section(self) -> Mapping[str, object]:
        return {
            "bot_token": self.team.token,
            "app_token": self.town.app_token,
            "base_url": self.town.base_url,
        }

    def person(self, name: str) -> Person:
        return self._account(name, is_bot=False)

    def namesake(self, person: Person) -> Person:
        return self._join(person.name, is_bot=False)

    def robot(self, name: str) -> Person:
        return self._account(name, is_bot=True)

    def direct(self, person: Person) -> Chat:
        return _Chat(scene=self, driver=self.team.direct(self.accounts[person.id]))

    def group(self, *people: Person) -> Chat:
        return _Chat(scene=self, driver=self._channel(people), whole=True)

    def threaded(self, *people: Person) -> Chat:
        return _Chat(scene=self, driver=self._channel(people))

    async def heard(self) -> None:
        await self.town.until(
            lambda: not self.town.pending, seconds=WAIT_SECONDS, what="everything acknowledged"
        )

    def attempts(self, chat: Chat) -> int:
        return sum(self.town.count(method, channel=chat.id) for method in SENDS)

    def deliver_again(self, *, last: int = 1, times: int = 1) -> None:
        for _ in range(times):
            self.town.again(last=last)

    def park(self, chat: Chat, *, seconds: int) -> None:
        self.town.fail(limit("chat.postMessage", seconds, channel=chat.id))

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
        fault = Fault(trouble=trouble, method="chat.postMessage", channel=chat.id, seconds=seconds)
        self.town.fail(fault)

    def _account(self, name: str, *, is_bot: bool) -> Person:
        known = next((a for a in self.accounts.values() if a.name == name), None)
        return self._join(name, is_bot=is_bot) if known is None else Person(id=known.id, name=name)

    def _join(self, name: str, *, is_bot: bool) -> Person:
        new = self.team.user(f"U{len(self.accounts) + 1}11", name, is_bot=is_bot)
        self.accounts[new.id] = new
        return Person(id=new.id, name=name)

    def _channel(self, people: Sequence[Person]) -> ChannelDriver:
        self.groups += 1
        members = [self.accounts[person.id] for person in people]
        return self.team.channel(f"C{self.groups}00", *members)


@asynccontextmanager
async def _open() -> AsyncGenerator[Scene]:
    async with slack_server(unlimited=True) as town:
        yield _Scene(town=town, team=town.team())


SLACK: Final = Platform(
    name="slack",
    renderer=SlackRenderer(),
    units=units,
    lacks=frozenset(),
    everybody=("<!channel>", "<!here>", "<@U211>"),
    visible=("<!channel>", "<!here>", "<@U211>"),
    open=_open,
)
