"""People who write to the bot of a killed gateway, press its buttons, and remember what they saw."""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from adapters.notes import NOTES
from gateway.domain.delivery import Mark
from tests.fakes.telegram.process import TelegramProcess

FIRST_PERSON: Final = 1_001
WRITES: Final = 0.1
"""How many of the messages ask for a run of the gated tool."""
BURST: Final = 4
AGAIN: Final = NOTES[Mark.REPEAT]


@dataclass(slots=True)
class People:
    """One private chat for each; every message has a number of its own."""

    service: TelegramProcess
    dice: random.Random
    chats: tuple[int, ...]
    said: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    writes: list[str] = field(default_factory=list[str])
    count: int = 0
    _seen: Counter[int] = field(default_factory=Counter[int])

    @classmethod
    def move_in(cls, service: TelegramProcess, dice: random.Random, *, chats: int) -> "People":
        """Let that many people start the bot."""
        service.do("bot")
        ids = tuple(range(FIRST_PERSON, FIRST_PERSON + chats))
        for who in ids:
            service.do("user", id=who, name=f"Person {who}")
            service.do("private", user=who)
        return cls(service, dice, ids, {who: [] for who in ids})

    def talk(self, limit: int) -> None:
        """Let somebody write a few messages, at most up to that many in all."""
        who = self.dice.choice(self.chats)
        batch: list[dict[str, Any]] = []
        for _ in range(min(self.dice.randint(1, BURST), limit - self.count)):
            self.count += 1
            text = f"message {self.count:05d}"
            if self.dice.random() < WRITES:
                note = f"note-{self.count:05d}"
                self.writes.append(note)
                text = call_of(note)
                # Alone: a call among other messages would be answered with them.
                batch.append({"chat": who, "text": f"/queue {text}"})
            else:
                batch.append({"chat": who, "text": text})
            self.said[who].append(text)
        if batch:
            self.service.do("say_many", messages=batch)

    def greet(self) -> None:
        """Let everybody write one message more and wait for its answer."""
        for who in self.chats:
            self.count += 1
            text = f"message {self.count:05d}"
            self.said[who].append(text)
            said = self.service.do("say", chat=who, text=text)
            self.service.do("wait", chat=who, contains=text, after=said["id"], seconds=60)

    def press(self) -> None:
        """Allow once, on each card that came since; each is pressed one time only."""
        for who in self.chats:
            for message in self.service.do("messages", chat=who, after=self._seen[who]):
                self._seen[who] = max(self._seen[who], message["id"])
                if "Allow once" in message["labels"]:
                    self.service.do("press", chat=who, label="Allow once", message=message["id"])

    def shown(self, who: int) -> list[dict[str, Any]]:
        """Return what the bot has said to somebody, oldest first."""
        return [item for item in self.service.do("messages", chat=who) if item["by_bot"]]


def call_of(note: str) -> str:
    """Return what asks the model for a run of the gated tool."""
    return f'call write {{"text": "{note}"}}'


def is_repeat(message: dict[str, Any]) -> bool:
    """Whether a message says that it may be one."""
    return AGAIN in message["text"]
