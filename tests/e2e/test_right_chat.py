"""A server's question in the chat whose call it belongs to, through the running service."""

import json
from collections.abc import Generator
from typing import Any, Final

import pytest

from tests.e2e.house import House
from tests.e2e.on_telegram import ANNA, configure, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.mcp_host.hosting import is_alive
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

BEN: Final = 222


@pytest.fixture(scope="module")
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        running.do("user", id=BEN, name="Ben")
        running.do("private", user=BEN)
        yield running


@pytest.fixture
def telegram_home(house: House, town: TelegramProcess) -> House:
    """A home whose server asks in its tool `order`, which nobody has to allow."""
    house.serve(tools={"policy": {"order": "allow"}})
    configure(house, town, allow_from=[str(ANNA), str(BEN)])
    return house


def order(town: TelegramProcess, person: int, message: str) -> int:
    said: int
    said = town.do("say", chat=person, text=f"/call order {json.dumps({'text': message})}")["id"]
    return said


def heard(town: TelegramProcess, chat: int, text: str, *, after: int) -> dict[str, Any]:
    found: dict[str, Any] = town.do("wait", chat=chat, contains=text, after=after, seconds=30)
    return found


def texts(town: TelegramProcess, chat: int) -> str:
    return "\n".join(str(item["text"]) for item in town.do("messages", chat=chat))


@requirement("elicitation.legacy_separation", "mcp.stdio.group_ends")
def test_two_chats_are_asked_at_once_and_a_killed_gateway_leaves_neither_process(
    house: House, town: TelegramProcess
) -> None:
    starts = house.file("starts")
    unasked = {"policy": {"order": "allow"}}
    house.serve("--starts", str(starts), tools=unasked, max_connections=2)
    configure(house, town, allow_from=[str(ANNA), str(BEN)])
    with Gateway(house.path) as gateway:
        for person, name in ((ANNA, "Anna"), (BEN, "Ben")):
            said = order(town, person, f"{name}, one of two?")
            heard(town, person, f"{name}, one of two?", after=said)
        told = hermes(house.path, "chat", "-q", "/mcp box").stdout
        pids = [int(line) for line in house.lines("starts")]
        assert all(is_alive(pid) for pid in pids)
        gateway.kill()
        eventually(lambda: not any(is_alive(pid) for pid in pids), what="no process")

    assert len(pids) == 2
    assert "its questions keep conversations apart: 2 of at most 2 connections open" in told


@requirement("elicitation.legacy_separation")
def test_a_second_chat_is_told_that_it_waits_and_is_asked_its_own_question_after_that(
    telegram_home: House, town: TelegramProcess
) -> None:
    with Gateway(telegram_home.path) as gateway:
        anna = order(town, ANNA, "Anna, which one?")
        heard(town, ANNA, "Anna, which one?", after=anna)
        ben = order(town, BEN, "Ben, which one?")
        heard(town, BEN, "box works for another chat and may ask there", after=ben)
        town.do("press", chat=ANNA, label="Decline")
        heard(town, ANNA, '{"action": "decline"}', after=anna)
        heard(town, BEN, "Ben, which one?", after=ben)
        town.do("press", chat=BEN, label="Decline")
        heard(town, BEN, '{"action": "decline"}', after=ben)
        assert gateway.end() == 0

    assert "Ben, which" not in texts(town, ANNA)
    assert "Anna, which" not in texts(town, BEN)
    assert telegram_home.runs == ["order", "order"]
