"""Every slash command in Telegram's form and in the terminal, and channels with their own model."""

import json
import re
from collections.abc import Generator
from typing import Any, Final

import pytest

from tests.e2e.house import House
from tests.e2e.on_telegram import ANNA, UNHURRIED, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.support.chat import hermes
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

BEN: Final = 222
GROUP: Final = -1001

COMMANDS: Final = {
    "help": "/help",
    'call mcp__box__echo {"text": "heard"}': "heard",
    "status": "State: ",
    "whoami": "role",
    "model": "answers",
    "tools": "mcp__box__",
    "mcp": "box",
    "approve": "Usage: ",
    "deny": "Usage: ",
    "approvals": "Nothing waits",
    "login": "Which server?",
    "reload-mcp": "Reloaded in",
    "sethome": "home channel now",
}
"""What each command is given with, and its answer."""

OF_SESSIONS: Final = {
    "queue alone": "You said: alone",
    "retry": "You said: alone",
    "title A day": "called “A day” now",
    "usage": "tokens in",
    "undo": "Taken out of what I remember: “alone”",
    "new": "A new session has started (number 2)",
    "sessions": "A day",
    "resume 1": "Session 1 goes on: “A day”",
    "stop": "Nothing is running here.",
}
"""Likewise, in an order in which all have something to do."""


@pytest.fixture
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        running.do("user", id=BEN, name="Ben")
        running.do("private", user=BEN)
        running.do(
            "supergroup",
            title="Home",
            people=[ANNA],
            chat_id=GROUP,
            bot_status="administrator",
            forum=True,
        )
        yield running


def configure(house: House, town: TelegramProcess, **account: object) -> None:
    telegram = {"token": town.do("bot")["token"], "base_url": town.base_url, **account}
    access = {"admins": [f"telegram:{ANNA}", f"telegram:{BEN}"], **UNHURRIED}
    house.configure(platforms={"telegram": telegram}, access=access)


def table() -> set[str]:
    from gateway.runtime.commands import COMMANDS as KNOWN

    return {item.name for item in KNOWN}


def say(town: TelegramProcess, chat: int, given: str) -> int:
    """Give a command as Telegram writes it."""
    name, _, argument = given.partition(" ")
    text = f"/{name.replace('-', '_')} {argument}".strip()
    number: int = town.do("say", chat=chat, text=text)["id"]
    return number


def answer(town: TelegramProcess, chat: int, asked: int, words: str) -> str:
    return str(town.do("wait", chat=chat, contains=words, after=asked, seconds=30)["text"])


@requirement("command.one_table", "command.session_history")
def test_every_command_works_in_telegrams_own_form_and_is_in_menu_and_help(
    house: House, town: TelegramProcess
) -> None:
    house.serve()
    configure(house, town)
    assert {given.partition(" ")[0] for given in (*COMMANDS, *OF_SESSIONS)} == table()
    with Gateway(house.path) as gateway:
        # A turn waits for the server, as commands do not.
        answer(town, BEN, say(town, BEN, 'call mcp__box__echo {"text": "up"}'), "up")
        general = {words: say(town, BEN, given) for given, words in COMMANDS.items()}
        # A chat is written to once a second: those of another go on meanwhile.
        for given, words in OF_SESSIONS.items():
            answer(town, ANNA, say(town, ANNA, given), words)
        said = {words: answer(town, BEN, asked, words) for words, asked in general.items()}
        assert all(f"/{name}" in said["/help"] for name in table())
        texts = [item["text"] for chat in (ANNA, BEN) for item in town.do("messages", chat=chat)]
        assert not any("There is no command" in text for text in texts)
        menu = {name for name, _ in town.do("menu", chat=ANNA)}
        assert menu == {name.replace("-", "_") for name in table()}
        in_groups = {name for name, _ in town.do("menu", chat=GROUP)}
        assert in_groups == menu - {"login", "reload_mcp", "sethome"}
        calls = [item for item in town.do("calls") if item["method"] == "setMyCommands"]
        assert gateway.end() == 0
    with Gateway(house.path) as gateway:
        answer(town, ANNA, say(town, ANNA, "status"), "State")
        again = [item for item in town.do("calls") if item["method"] == "setMyCommands"]
        assert again == calls
        assert gateway.end() == 0


@requirement("command.one_table")
def test_every_command_works_in_the_terminal(house: House) -> None:
    house.serve()
    house.configure()
    with house.chat() as chat:
        for given, words in {**COMMANDS, **OF_SESSIONS}.items():
            chat.say(f"/{given}")
            said = chat.expect(re.escape(words))
            assert "There is no command" not in said.string
        assert chat.end() == 0
    assert house.runs == []


@requirement("platform.channel_overrides")
def test_a_group_is_answered_by_its_own_model_with_its_own_prompt_and_its_topics_too(
    house: House, town: TelegramProcess
) -> None:
    topic = town.do("topic", chat=GROUP, name="a")["topic"]
    own = {"provider": "openai", "name": "of-the-group", "base_url": house.model.url}
    overrides = {str(GROUP): {"model": own, "system_prompt": "You are in a group."}}
    configure(
        house,
        town,
        groups={str(GROUP): {"require_mention": False}},
        channel_overrides=overrides,
    )
    assert hermes(house.path, "config", "check").returncode == 0
    with Gateway(house.path) as gateway:
        for place in ({"chat": ANNA}, {"chat": GROUP}, {"chat": GROUP, "topic": topic}):
            text = f"over {json.dumps(place)}"
            asked = town.do("say", text=text, by=ANNA, **place)["id"]
            town.do("wait", contains="You said", after=asked, **place)
        asked = town.do("say", chat=GROUP, text="/model", by=ANNA)["id"]
        shown = town.do("wait", chat=GROUP, contains="answers here", after=asked)["text"]
        assert "of-the-group" in shown
        assert gateway.end() == 0

    def asked_of(place: dict[str, Any]) -> tuple[str, bool]:
        (body,) = [
            body
            for body in house.model.requests(f"over {json.dumps(place)}")
            if body["messages"][-1]["content"] == f"over {json.dumps(place)}"
        ] or house.model.requests(f"[Anna] over {json.dumps(place)}")
        return body["model"], "You are in a group." in body["messages"][0]["content"]

    assert asked_of({"chat": ANNA}) == ("scripted", False)
    assert asked_of({"chat": GROUP}) == ("of-the-group", True)
    assert asked_of({"chat": GROUP, "topic": topic}) == ("of-the-group", True)
