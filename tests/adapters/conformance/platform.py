"""What the suite asks of a platform: people in chats, what they see, and what can go wrong.

One file a platform implements this over that platform's own fake. Our side is opened as the product
opens it, from the platform's section of the configuration; the suite never reaches into an adapter.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from gateway.ports import Renderer

T = TypeVar("T")

NOT_SENT: Final = "(the form itself says) "

WAIT_SECONDS: Final = 15.0
"""Longer than anything takes here: a test that waits so long has failed."""


class Ability(StrEnum):
    """What not every platform can do; one that lacks it is told so in `Platform.lacks`."""

    THREADS = "threads"
    """Conversations of their own inside a chat."""
    CHANGES = "changes"
    """It tells us when somebody changes what they wrote."""
    MODALS = "modals"
    """Forms open as one native form instead of question by question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody with an account there; `id` is what the configuration calls them."""

    id: str
    name: str


class Press(Protocol):
    """A pressed button."""

    async def told(self) -> str:
        """Return what the presser alone was told, "" when nothing, once the press is answered.

        Raises:
            AssertionError: It was not answered within the platform's deadline.
        """
        ...


class Button(Protocol):
    """A button as some client still shows it, whatever has become of its card."""

    async def press(self, *, by: Person | None = None) -> Press: ...


class Shown(Protocol):
    """A message as it is seen now: an edit changes it."""

    @property
    def id(self) -> str: ...

    @property
    def ours(self) -> bool:
        """Whether the bot wrote it."""
        ...

    @property
    def text(self) -> str:
        """Every visible character of it."""
        ...

    @property
    def labels(self) -> Sequence[str]:
        """What its buttons say; none once they are gone or cannot be pressed."""
        ...

    @property
    def answers(self) -> str | None:
        """The id of the message it visibly answers."""
        ...

    @property
    def pings(self) -> Sequence[str]:
        """Whom it notifies by name, everybody included: by id, or as the platform reads it."""
        ...

    @property
    def code(self) -> Sequence[str]:
        """What of it is shown as code."""
        ...

    @property
    def files(self) -> Sequence[tuple[str, bytes]]:
        """Its files, by name and contents."""
        ...

    def button(self, label: str) -> Button: ...


class Chat(ABC):
    """One chat, or one thread of it, as its people see it; without `by` the first of them acts."""

    @property
    @abstractmethod
    def id(self) -> str:
        """What the configuration calls the chat; of a thread, the chat it is in."""

    @property
    @abstractmethod
    def shown(self) -> Sequence[Shown]:
        """What is seen now, oldest first; of a chat, without what is in its threads."""

    @abstractmethod
    async def say(
        self,
        text: str,
        *,
        by: Person | None = None,
        calling: bool = False,
        answering: Shown | None = None,
    ) -> Shown:
        """Write a message; `calling` names the bot, `answering` quotes or replies natively."""

    @abstractmethod
    async def attach(self, name: str, data: bytes, *, saying: str = "", size: int = 0) -> Shown:
        """Write a message with a file; `size` is what it claims to have, 0 for what it has."""

    @abstractmethod
    async def give(self, name: str, argument: str = "", *, by: Person | None = None) -> None:
        """Give a command in the platform's own form, not as text."""

    @abstractmethod
    async def change(self, message: Shown, text: str) -> None:
        """Let its writer change a message."""

    @abstractmethod
    async def thread(self, name: str) -> "Chat":
        """Open a thread in this chat."""

    @abstractmethod
    async def fill(self, answers: Mapping[str, str | None], *, by: Person | None = None) -> None:
        """Answer a form that is asked, by the labels of its fields; None leaves one out.

        In one native form, or question by question.
        """

    @abstractmethod
    async def mistake(self, label: str, answer: str) -> str:
        """Give a field that is asked a wrong answer; return what the person is told of it.

        What a native form does not even send begins with `NOT_SENT`.
        """

    @abstractmethod
    async def until(self, holds: Callable[[], T], *, what: str) -> T:
        """Return what `holds()` says once it is true; looked at on every change.

        Raises:
            AssertionError: It was not within `WAIT_SECONDS`.
        """

    @property
    def texts(self) -> list[str]:
        """What the bot wrote and is still seen."""
        return [message.text for message in self.shown if message.ours]

    @property
    def draft(self) -> str:
        """What is seen of a reply and is no message."""
        return ""

    @property
    def growing(self) -> str:
        """What is seen of a reply that is not there yet, if anything is."""
        return self.draft or next(reversed(self.texts), "")

    async def reply(self, words: str) -> Shown:
        """Return the first message of the bot that has these words."""
        return await self.found(lambda message: message.ours and words in message.text, words)

    async def card(self, label: str, *, saying: str = "") -> Shown:
        """Return the newest message of the bot with such a button."""
        what = f"a card with {label!r} {saying}"
        await self.found(lambda m: label in m.labels and saying in m.text, what)
        return [m for m in self.shown if label in m.labels and saying in m.text][-1]

    async def press(self, label: str, *, by: Person | None = None) -> Press:
        """Press the newest such button once there is one."""
        return await (await self.card(label)).button(label).press(by=by)

    async def found(self, wanted: Callable[[Shown], object], what: str) -> Shown:
        """Return the first message seen that is wanted, as soon as there is one."""

        def first() -> Shown | None:
            return next((message for message in self.shown if wanted(message)), None)

        try:
            message = await self.until(first, what=what)
        except AssertionError as error:
            seen = [(m.id, m.ours, m.text, list(m.labels)) for m in self.shown]
            raise AssertionError(f"{error}; the chat shows {seen}") from None
        assert message is not None
        return message


class Scene(ABC):
    """The platform's service, running, with one bot of ours and no people yet."""

    @property
    @abstractmethod
    def platform(self) -> "Platform": ...

    @property
    @abstractmethod
    def section(self) -> Mapping[str, object]:
        """What `platforms.<name>` says of our bot, without who may talk to it."""

    @abstractmethod
    def person(self, name: str) -> Person:
        """Return the one person of that name, new the first time."""

    @abstractmethod
    def namesake(self, person: Person) -> Person:
        """Return somebody else who is called the same."""

    @abstractmethod
    def robot(self, name: str) -> Person:
        """Return a bot of somebody else's."""

    @abstractmethod
    def direct(self, person: Person) -> Chat:
        """Return the chat of a person with our bot."""

    @abstractmethod
    def group(self, *people: Person) -> Chat:
        """Return a new chat of several people in which our bot reads everything."""

    @abstractmethod
    def threaded(self, *people: Person) -> Chat:
        """Return such a chat that can have threads."""

    @abstractmethod
    async def heard(self) -> None:
        """Return once we have acknowledged everything that was said and pressed."""

    @abstractmethod
    def attempts(self, chat: Chat) -> int:
        """Return how often we tried to write into a chat, refused or not."""

    # --- what goes wrong ----------------------------------------------------------------

    @abstractmethod
    def deliver_again(self, *, last: int = 1, times: int = 1) -> None:
        """Let the last things we acknowledged come once more, as they came."""

    @abstractmethod
    def park(self, chat: Chat, *, seconds: int) -> None:
        """Let the next send to a chat be refused with the wish to wait so long."""

    @abstractmethod
    def slow(self, chat: Chat, *, seconds: float) -> None:
        """Let the next send to a chat take effect at once and be answered so much later."""

    @abstractmethod
    def unanswered(self, chat: Chat, *, arrives: bool) -> None:
        """Let the answer to the next send to a chat be lost, with or without its effect."""

    @abstractmethod
    def away(self) -> AbstractAsyncContextManager[None]:
        """Cut every connection and refuse new ones until the block ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """One platform as the suite sees it; `units` is how its messages are measured.

    `everybody` are texts that would notify people if they went out as they are; `visible` is what
    of them must still be read.
    """

    name: str
    renderer: Renderer
    units: Callable[[str], int]
    lacks: frozenset[Ability]
    everybody: tuple[str, ...]
    visible: tuple[str, ...]
    open: Callable[[], AbstractAsyncContextManager[Scene]]

    def has(self, ability: Ability) -> bool:
        return ability not in self.lacks
