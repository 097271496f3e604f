"""Telegram asking to be left alone for a while, under a real service that is killed meanwhile."""

from collections.abc import Generator
from typing import Any, Final

import pytest

from tests.e2e.house import House
from tests.e2e.on_telegram import ANNA, configure, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.soak.ledger import reading
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

FREE: Final = ANNA
WAITS: Final = {201: 1, 202: 30, 203: 1_000}
"""Whose chat has to wait for how many seconds."""


@pytest.fixture
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        for person in WAITS:
            running.do("user", id=person, name=f"Number {person}")
            running.do("private", user=person)
        yield running


def sends(town: TelegramProcess, chat: int) -> list[dict[str, Any]]:
    """Return the calls in a chat that were to show an answer."""
    found: list[dict[str, Any]] = town.do("calls", method="sendMessage", chat=chat)
    return found


def answered(town: TelegramProcess, chat: int, text: str, *, seconds: float = 60) -> dict[str, Any]:
    found: dict[str, Any] = town.do(
        "wait", chat=chat, contains=f"You said: {text}", after=0, seconds=seconds
    )
    return found


def parked(house: House) -> int:
    """Return how many chats were told to wait."""
    with reading(house.path) as database:
        query = "SELECT count(*) FROM chat WHERE parked_until IS NOT NULL"
        (found,) = database.execute(query).fetchone()
    return int(found)


@requirement("fault.f21", "case.t13")
def test_a_chat_waits_as_long_as_it_is_told_also_across_a_kill_and_no_other_does(
    house: House, town: TelegramProcess
) -> None:
    configure(house, town, allow_from=[str(person) for person in (FREE, *WAITS)])
    for chat, seconds in WAITS.items():
        town.do(
            "fail",
            trouble="refuse",
            method="sendMessage",
            chat=chat,
            status=429,
            description=f"Too Many Requests: retry after {seconds}",
            retry_after=seconds,
        )
    with Gateway(house.path) as gateway:
        for chat in WAITS:
            town.do("say", chat=chat, text="first")
        eventually(lambda: parked(house) == 3, what="three chats that wait")
        gateway.kill()

    with Gateway(house.path) as gateway:
        town.do("say", chat=FREE, text="is it free here?")
        town.do("say", chat=202, text="second")
        answered(town, FREE, "is it free here?")
        answered(town, 201, "first")
        answered(town, 202, "first")
        answered(town, 202, "second")
        assert gateway.end() == 0

    for chat, seconds in {201: 1, 202: 30}.items():
        refused, served, *_ = sends(town, chat)
        assert (refused["status"], served["status"]) == (429, 200)
        assert served["at"] - refused["at"] >= seconds
    assert [call["values"]["text"] for call in sends(town, 202)[1:]] == [
        "You said: first",
        "You said: second",
    ]
    assert [call["status"] for call in sends(town, 203)] == [429]
    refused_at = sends(town, 203)[0]["at"]
    signs = town.do("calls", method="sendChatAction", chat=203)
    assert [call for call in signs if call["at"] > refused_at] == []
