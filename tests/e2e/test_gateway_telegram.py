"""The main job in a chat through real processes: a press runs the tool once, all see who decided."""

import json
from collections.abc import Generator
from typing import Any, Final

import pytest

from tests.e2e.house import House
from tests.e2e.on_telegram import ANNA, asked, configure, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

BEN: Final = 222
GROUP: Final = -1001


@pytest.fixture(scope="module")
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        running.do("user", id=BEN, name="Ben")
        running.do(
            "supergroup",
            title="Home",
            people=[ANNA, BEN],
            chat_id=GROUP,
            bot_status="administrator",
        )
        yield running


@pytest.fixture
def telegram_home(house: House, town: TelegramProcess) -> House:
    house.serve()
    configure(house, town, allow_from=[str(ANNA), str(BEN)], require_mention=False)
    return house


def pressed(town: TelegramProcess, chat: int, card: int, label: str, **more: object) -> str:
    """Press a button; return what the presser is told above the chat."""
    query = town.do("press", chat=chat, label=label, message=card, **more)["query"]
    answered: dict[str, Any] = town.do("query", query=query, seconds=20)
    return str(answered["text"])


def shown(town: TelegramProcess, chat: int, message: int) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [item for item in town.do("messages", chat=chat) if item["id"] == message]
    return found


def asked_in_group(town: TelegramProcess, person: int, text: str) -> int:
    """Let somebody of the group ask for a run of the gated tool; return the id of its card."""
    said = town.do("say", chat=GROUP, by=person, text=f"call write {json.dumps({'text': text})}")
    card: int = town.do("wait", chat=GROUP, label="Allow once", after=said["id"])["id"]
    return card


def answers(town: TelegramProcess, chat: int, after: int) -> list[dict[str, Any]]:
    """Return what the bot wrote in a chat after a message."""
    found = town.do("messages", chat=chat)
    return [item for item in found if item["by_bot"] and item["id"] > after]


def closing(town: TelegramProcess, chat: int, card: int, words: str) -> dict[str, Any]:
    """Return a card once it says so: its edit may come after the reply."""
    found: dict[str, Any] = town.do("wait", chat=chat, contains=words, after=card - 1)
    assert (found["id"], found["labels"]) == (card, [])
    return found


def test_a_card_is_allowed_once_and_pressed_again_nothing_happens(
    telegram_home: House, town: TelegramProcess
) -> None:
    with Gateway(telegram_home.path) as gateway:
        card = asked(town, "milk")
        data = shown(town, ANNA, card)["markup"]["inline_keyboard"][0][0]["callback_data"]
        told = pressed(town, ANNA, card, "Allow once")
        town.do("wait", chat=ANNA, contains="Got: 1", after=card)

        closed = closing(town, ANNA, card, "Allowed once by Anna")

        assert pressed(town, ANNA, card, "", data=data) == told
        assert gateway.end() == 0
    assert telegram_home.runs == ["milk"]
    assert shown(town, ANNA, card)["text"] == closed["text"]


@requirement("case.ap1")
def test_of_two_cards_only_the_pressed_one_is_decided(
    telegram_home: House, town: TelegramProcess
) -> None:
    with Gateway(telegram_home.path) as gateway:
        first = asked_in_group(town, ANNA, "of Anna")
        second = asked_in_group(town, BEN, "of Ben")

        pressed(town, GROUP, second, "Allow once", by=BEN)
        town.do("wait", chat=GROUP, contains="Got: 1", after=second)
        closing(town, GROUP, second, "Allowed once by Ben")
        assert "Allow once" in shown(town, GROUP, first)["labels"]
        assert telegram_home.runs == ["of Ben"]

        pressed(town, GROUP, first, "Deny", by=ANNA)
        closing(town, GROUP, first, "Denied by Anna")
        eventually(
            lambda: any("denied" in item["text"] for item in answers(town, GROUP, second)),
            what="a word that it was denied",
        )
        assert gateway.end() == 0
    assert telegram_home.runs == ["of Ben"]


def test_a_press_that_is_delivered_again_runs_nothing_again(
    telegram_home: House, town: TelegramProcess
) -> None:
    with Gateway(telegram_home.path) as gateway:
        card = asked(town, "once")
        pressed(town, ANNA, card, "Allow once")
        town.do("wait", chat=ANNA, contains="Got: 1", after=card)
        town.do("redeliver", last=1, times=2)
        said = town.do("say", chat=ANNA, text="after the repeats")
        town.do("wait", chat=ANNA, contains="You said: after the repeats", after=said["id"])
        assert gateway.end() == 0
    town.do("redeliver", last=2, times=1)
    with Gateway(telegram_home.path) as gateway:
        said = town.do("say", chat=ANNA, text="after a restart")
        town.do("wait", chat=ANNA, contains="You said: after a restart", after=said["id"])
        assert gateway.end() == 0
    assert telegram_home.runs == ["once"]
    assert "Allowed once by Anna" in shown(town, ANNA, card)["text"]


def test_a_bystander_is_refused_and_the_requester_still_decides(
    telegram_home: House, town: TelegramProcess
) -> None:
    with Gateway(telegram_home.path) as gateway:
        card = asked_in_group(town, ANNA, "group")

        refused = pressed(town, GROUP, card, "Allow once", by=BEN)
        assert refused.startswith("Only Anna")
        assert refused.endswith("can decide this.")
        assert "Allow once" in shown(town, GROUP, card)["labels"]
        assert telegram_home.runs == []

        pressed(town, GROUP, card, "Allow once", by=ANNA)
        town.do("wait", chat=GROUP, contains="Got: 1", after=card)
        assert gateway.end() == 0
    assert telegram_home.runs == ["group"]
    assert "Allowed once by Anna" in shown(town, GROUP, card)["text"]


@requirement("fault.f8")
def test_an_old_button_works_after_the_gateway_was_killed(
    telegram_home: House, town: TelegramProcess
) -> None:
    with Gateway(telegram_home.path) as gateway:
        card = asked(town, "bread")
        gateway.kill()
    with Gateway(telegram_home.path) as gateway:
        pressed(town, ANNA, card, "Allow once")
        town.do("wait", chat=ANNA, contains="Got: 1", after=card)
        assert gateway.end() == 0
    assert telegram_home.runs == ["bread"]
    assert "Allowed once by" in shown(town, ANNA, card)["text"]


def test_a_card_that_nobody_presses_expires_and_a_late_press_runs_nothing(
    telegram_home: House, town: TelegramProcess
) -> None:
    account = json.loads((telegram_home.path / "config.yaml").read_text())["platforms"]
    telegram_home.configure(platforms=account, approvals={"timeout": 2})
    with Gateway(telegram_home.path) as gateway:
        card = asked(town, "late")
        data = shown(town, ANNA, card)["markup"]["inline_keyboard"][0][0]["callback_data"]
        town.do("wait", chat=ANNA, contains="Got:", after=card)
        closing(town, ANNA, card, "xpired")
        assert (
            pressed(town, ANNA, card, "", data=data)
            == "Too late: it was not run: no answer in 2 s."
        )
        assert gateway.end() == 0
    assert telegram_home.runs == []
