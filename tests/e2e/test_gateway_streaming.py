"""Replies that grow in a chat, through real processes: seen early, sent once, nothing left beside them."""

from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from adapters.telegram.signs import WAITING
from tests.e2e.house import House
from tests.e2e.on_telegram import ANNA, configure, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

GROUP: Final = -1001
FOX: Final = "The quick **brown** fox jumps over the lazy dog."
HALF: Final = "The quick"
WHOLE: Final = "The quick brown fox jumps over the lazy dog."


@pytest.fixture
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        running.do(
            "supergroup", title="Home", people=[ANNA], chat_id=GROUP, bot_status="administrator"
        )
        yield running
        assert running.do("violations") == []


@pytest.fixture
def home(house: House, town: TelegramProcess) -> House:
    house.serve()
    configure(house, town, groups=[str(GROUP)], require_mention=False)
    return house


def ask(town: TelegramProcess, house: House, *, chat: int) -> Path:
    """Ask for a text of which half is written; it goes on once there is the file returned."""
    free = house.file(f"free{chat}")
    town.do("say", chat=chat, text=f"grow {free} {FOX}")
    return free


def shown(town: TelegramProcess, chat: int) -> list[dict[str, Any]]:
    """Return what the bot wrote and is still there."""
    return [item for item in town.do("messages", chat=chat) if item["by_bot"]]


def looks(town: TelegramProcess, chat: int) -> list[tuple[str, bool]]:
    return [(item["text"], item["silent"]) for item in shown(town, chat)]


def sends(town: TelegramProcess, chat: int) -> list[bool]:
    """Return for each message that was sent whether it notified."""
    calls = town.do("calls", method="sendMessage", chat=chat)
    return [call["values"].get("disable_notification") is None for call in calls]


@requirement("stream.as_generated")
def test_a_private_chat_shows_a_draft_and_then_the_reply(
    home: House, town: TelegramProcess
) -> None:
    with Gateway(home.path) as gateway:
        free = ask(town, home, chat=ANNA)
        assert town.do("draft", chat=ANNA, contains=HALF, seconds=30) != WHOLE
        assert shown(town, ANNA) == []
        free.touch()
        town.do("wait", chat=ANNA, contains=WHOLE, seconds=30)
        assert gateway.end() == 0
    assert looks(town, ANNA) == [(WHOLE, False)]
    assert town.do("draft", chat=ANNA) is None
    assert sends(town, ANNA) == [True]


@requirement("stream.as_generated", "design.reply.one_notification")
def test_a_group_sees_a_silent_message_grow_and_is_notified_once(
    home: House, town: TelegramProcess
) -> None:
    with Gateway(home.path) as gateway:
        free = ask(town, home, chat=GROUP)
        growing = town.do("wait", chat=GROUP, contains=HALF, seconds=30)
        assert (growing["text"] != WHOLE, growing["silent"]) == (True, True)
        free.touch()
        reply = town.do("wait", chat=GROUP, contains=WHOLE, after=growing["id"], seconds=30)
        eventually(lambda: looks(town, GROUP) == [(WHOLE, False)], what="the reply alone")
        assert gateway.end() == 0
    assert reply["entities"] != []
    assert sends(town, GROUP) == [False, True]


@requirement("fault.f3", "design.reply.one_notification")
@pytest.mark.parametrize("chat", [ANNA, GROUP], ids=["private", "group"])
def test_killed_in_the_middle_of_a_reply_it_comes_once_and_nothing_is_left(
    home: House, town: TelegramProcess, chat: int
) -> None:
    with Gateway(home.path) as gateway:
        free = ask(town, home, chat=chat)
        if chat == ANNA:
            town.do("draft", chat=chat, contains=HALF, seconds=30)
        else:
            town.do("wait", chat=chat, contains=HALF, seconds=30)
        gateway.kill()
    free.touch()
    with Gateway(home.path) as gateway:
        eventually(lambda: looks(town, chat) == [(WHOLE, False)], what="the reply alone")
        said = town.do("say", chat=chat, text="and then?")
        town.do("wait", chat=chat, contains="You said: and then?", after=said["id"], seconds=30)
        assert gateway.end() == 0
    assert [text for text, _ in looks(town, chat)] == [WHOLE, "You said: and then?"]
    assert town.do("draft", chat=chat) is None
    assert sends(town, chat).count(True) == 2


@requirement("design.reply.one_notification")
@pytest.mark.parametrize("point", ["delivery.claimed", "delivery.sent"])
def test_killed_while_the_first_words_are_sent_they_are_found_and_taken_away(
    home: House, town: TelegramProcess, point: str
) -> None:
    with Gateway(home.path, env={"HERMES_FAULT": f"{point}:1:kill"}) as gateway:
        free = ask(town, home, chat=GROUP)
        assert gateway.wait(seconds=60) != 0
    free.touch()
    with Gateway(home.path) as gateway:
        eventually(lambda: looks(town, GROUP) == [(WHOLE, False)], what="the reply alone")
        assert gateway.end() == 0
    assert sends(town, GROUP).count(True) == 1


@requirement("stream.as_generated")
def test_switched_off_a_reply_appears_when_it_is_whole(home: House, town: TelegramProcess) -> None:
    configure(home, town, groups=[str(GROUP)], require_mention=False, streaming=False)
    with Gateway(home.path) as gateway:
        for chat in (ANNA, GROUP):
            free = ask(town, home, chat=chat)
            free.touch()
            town.do("wait", chat=chat, contains=WHOLE, seconds=30)
        assert gateway.end() == 0
    assert town.do("calls", method="sendMessageDraft", count=True) == 0
    assert sends(town, GROUP) == [True]
    assert [body.get("stream", False) for body in home.model.requests(f"grow {free} {FOX}")] == [
        False
    ]


@requirement("busy.queue_acknowledged")
def test_what_is_said_meanwhile_is_marked_and_answered_after_it(
    home: House, town: TelegramProcess
) -> None:
    with Gateway(home.path) as gateway:
        free = ask(town, home, chat=ANNA)
        town.do("draft", chat=ANNA, contains=HALF, seconds=30)
        said = town.do("say", chat=ANNA, text="and you?")

        def marks() -> list[list[str]]:
            found = town.do("messages", chat=ANNA)
            return [list(item["reactions"].values()) for item in found if item["id"] == said["id"]]

        eventually(lambda: marks() == [[[WAITING]]], what="a mark on what waits")
        free.touch()
        town.do("wait", chat=ANNA, contains="You said: and you?", after=said["id"], seconds=30)
        assert gateway.end() == 0
    assert [text for text, _ in looks(town, ANNA)] == [WHOLE, "You said: and you?"]
