"""What Telegram does to a service through real processes: a night's backlog, repeats, and not being there."""

from collections.abc import Generator
from typing import Final

import pytest

from tests.e2e.house import House
from tests.e2e.on_telegram import (
    ANNA,
    configure,
    platform_status,
    sent,
    telegram_with_anna,
)
from tests.fakes.telegram.process import TelegramProcess
from tests.soak.ledger import reading
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

BACKLOG: Final = 5_000
BACKLOG_SECONDS: Final = 10.0
GIVEN_UP_SECONDS: Final = 30.0
"""A start that hangs is given up within this."""


@pytest.fixture
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        yield running


@pytest.fixture
def telegram_home(house: House, town: TelegramProcess) -> House:
    configure(house, town)
    return house


def said_by_people(house: House) -> list[str]:
    """Return what is stored of people's messages, in its order."""
    with reading(house.path) as database:
        rows = database.execute("SELECT body FROM message WHERE role = 'user' ORDER BY id")
        return [body for (body,) in rows.fetchall()]


def count(house: House, query: str) -> int:
    with reading(house.path) as database:
        (found,) = database.execute(query).fetchone()
    return int(found)


@requirement("intake.backlog.never_dropped", "fault.f25")
def test_a_backlog_of_thousands_is_stored_in_its_order_within_seconds_and_answered_once(
    telegram_home: House, town: TelegramProcess
) -> None:
    texts = [f"message {number:05d}" for number in range(BACKLOG)]
    waiting = [{"chat": ANNA, "text": text} for text in texts]
    town.do("say_many", messages=waiting)

    with Gateway(telegram_home.path) as gateway:
        eventually(
            lambda: count(telegram_home, "SELECT count(*) FROM inbound") == BACKLOG,
            seconds=BACKLOG_SECONDS,
            what="a whole backlog that is stored",
        )
        assert said_by_people(telegram_home) == texts
        town.do("wait", chat=ANNA, contains=f"You said: {texts[-1]}", after=0, seconds=60)
        assert gateway.end() == 0
    assert said_by_people(telegram_home) == texts
    assert count(telegram_home, "SELECT count(*) FROM turn") == 1
    assert count(telegram_home, "SELECT count(*) FROM inbound WHERE state <> 'done'") == 0
    assert len([item for item in town.do("messages", chat=ANNA) if item["by_bot"]]) == 1


@requirement("fault.f26", "case.t22")
def test_an_update_delivered_three_times_also_across_a_restart_is_one_turn(
    telegram_home: House, town: TelegramProcess
) -> None:
    with Gateway(telegram_home.path) as gateway:
        first = town.do("say", chat=ANNA, text="only once")
        town.do("wait", chat=ANNA, contains="You said: only once", after=first["id"])
        town.do("redeliver", last=1, times=1)
        second = town.do("say", chat=ANNA, text="after a repeat")
        town.do("wait", chat=ANNA, contains="You said: after a repeat", after=second["id"])
        assert gateway.end() == 0

    town.do("redeliver", last=2, times=1)
    with Gateway(telegram_home.path) as gateway:
        third = town.do("say", chat=ANNA, text="after a restart")
        town.do("wait", chat=ANNA, contains="You said: after a restart", after=third["id"])
        assert gateway.end() == 0

    assert said_by_people(telegram_home) == ["only once", "after a repeat", "after a restart"]
    assert count(telegram_home, "SELECT count(*) FROM turn") == 3
    assert len(sent(town, "You said: only once")) == 1
    assert len(sent(town, "You said: after a repeat")) == 1


@requirement("platform.state.receiving")
def test_telegram_that_is_down_at_the_start_is_said_to_be_and_found_when_it_is_back(
    telegram_home: House, town: TelegramProcess
) -> None:
    town.do("down")
    with Gateway(telegram_home.path) as gateway:
        eventually(
            lambda: platform_status(telegram_home.path)["state"] == "degraded",
            what="a degraded state",
        )
        assert platform_status(telegram_home.path)["reason"]
        assert hermes(telegram_home.path, "gateway", "status").returncode == 1

        said = town.do("say", chat=ANNA, text="are you there?")
        town.do("up")
        town.do(
            "wait", chat=ANNA, contains="You said: are you there?", after=said["id"], seconds=60
        )
        assert platform_status(telegram_home.path)["state"] == "connected"
        assert hermes(telegram_home.path, "gateway", "status").returncode == 0
        assert gateway.end() == 0


@requirement("case.in8", "platform.failure.never_stops_others")
def test_a_telegram_that_never_answers_at_the_start_is_said_to_and_holds_nothing_else_up(
    telegram_home: House, town: TelegramProcess
) -> None:
    telegram_home.serve()
    configure(telegram_home, town)
    town.do("fail", trouble="hang_before", method="getMe", times=1)
    with Gateway(telegram_home.path) as gateway:
        asked = hermes(telegram_home.path, "chat", "-q", "is anybody there?")
        assert "You said: is anybody there?" in asked.stdout
        assert platform_status(telegram_home.path)["state"] == "connecting"
        eventually(
            lambda: "no answer in time" in platform_status(telegram_home.path)["reason"],
            seconds=GIVEN_UP_SECONDS,
            what="a start that is given up",
        )
        said = town.do("say", chat=ANNA, text="and now?")
        town.do("wait", chat=ANNA, contains="You said: and now?", after=said["id"], seconds=60)
        assert gateway.end() == 0
