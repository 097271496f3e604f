"""The service killed at each named point of a message's way, on the Telegram of the tests."""

import json
import signal
from collections.abc import Generator

import pytest

from gateway.telemetry.faults import FaultPoint
from tests.e2e.house import House
from tests.e2e.on_telegram import ANNA, asked, configure, telegram_with_anna
from tests.fakes.telegram.process import TelegramProcess
from tests.soak.ledger import reading
from tests.support.chat import hermes
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement

GATED = (
    FaultPoint.APPROVAL_DECIDED,
    FaultPoint.TOOL_STARTED,
    FaultPoint.TOOL_RETURNED,
    FaultPoint.TOOL_RECORDED,
)
"""Only a tool call passes these."""
FETCHING = (FaultPoint.FILE_FETCHING, FaultPoint.FILE_KEPT)
"""Only a message with a file passes these."""


@pytest.fixture(scope="module")
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        yield running


@pytest.fixture
def telegram_home(house: House, town: TelegramProcess) -> House:
    house.serve()
    configure(house, town)
    return house


def dying_at(point: FaultPoint, house: House, *, nth: int = 1) -> Gateway:
    return Gateway(house.path, env={"HERMES_FAULT": f"{point}:{nth}:kill"})


def killed(gateway: Gateway) -> bool:
    return gateway.wait() == -signal.SIGKILL


def stored(house: House, role: str, text: str) -> int:
    with reading(house.path) as database:
        query = "SELECT count(*) FROM message WHERE role = ? AND body = ?"
        (count,) = database.execute(query, (role, text)).fetchone()
    return int(count)


@requirement("fault.f1", "fault.f2", "fault.f3", "fault.f5", "fault.f6", "turn.resume.last_step")
@pytest.mark.parametrize(
    "point", [point for point in FaultPoint if point not in {*GATED, *FETCHING}]
)
def test_killed_at_a_point_a_message_is_still_one_message_and_one_answer(
    telegram_home: House, town: TelegramProcess, point: FaultPoint
) -> None:
    text = f"hello from {point}"
    with dying_at(point, telegram_home) as gateway:
        said = town.do("say", chat=ANNA, text=text)
        assert killed(gateway)

    with Gateway(telegram_home.path) as gateway:
        town.do("wait", chat=ANNA, contains=f"You said: {text}", after=said["id"])
        # What comes after it is answered after it: nothing of it is left.
        town.do("say", chat=ANNA, text="and then")
        town.do("wait", chat=ANNA, contains="You said: and then", after=said["id"])
        assert gateway.end() == 0

    answers = [item["text"] for item in town.do("messages", chat=ANNA, after=said["id"])]
    assert [answer for answer in answers if text in answer] == [f"You said: {text}"]
    assert stored(telegram_home, "user", text) == 1
    assert stored(telegram_home, "assistant", f"You said: {text}") == 1


@requirement("fault.f3", "turn.resume.last_step")
def test_killed_while_the_model_answers_the_question_is_asked_again_and_answered_once(
    telegram_home: House, town: TelegramProcess
) -> None:
    text = "fail slow 1 and be killed meanwhile"
    with Gateway(telegram_home.path) as gateway:
        said = town.do("say", chat=ANNA, text=text)
        eventually(lambda: bool(telegram_home.model.requests(text)), what="a request under way")
        gateway.kill()

    with Gateway(telegram_home.path) as gateway:
        town.do("wait", chat=ANNA, contains="Fine after slow.", after=said["id"], seconds=60)
        town.do("say", chat=ANNA, text="and then")
        town.do("wait", chat=ANNA, contains="You said: and then", after=said["id"])
        assert gateway.end() == 0

    assert len(telegram_home.model.requests(text)) >= 2
    shown = [item["text"] for item in town.do("messages", chat=ANNA, after=said["id"])]
    assert shown.count("Fine after slow.") == 1
    assert stored(telegram_home, "assistant", "Fine after slow.") == 1


@requirement("fault.f4", "turn.resume.write_never_repeated", "fault.f9")
@pytest.mark.parametrize(
    ("point", "runs", "answer"),
    [
        (FaultPoint.APPROVAL_DECIDED, 1, "Got: 1"),
        (FaultPoint.TOOL_STARTED, 0, "interrupted before its result arrived"),
        (FaultPoint.TOOL_RETURNED, 1, "interrupted before its result arrived"),
        (FaultPoint.TOOL_RECORDED, 1, "Got: 1"),
    ],
)
def test_killed_around_an_allowed_call_it_runs_once_at_most_and_its_fate_is_told(
    telegram_home: House, town: TelegramProcess, point: FaultPoint, runs: int, answer: str
) -> None:
    with dying_at(point, telegram_home) as gateway:
        card = asked(town, point)
        town.do("press", chat=ANNA, label="Allow once", message=card)
        assert killed(gateway)

    def closed() -> bool:
        shown = next(item for item in town.do("messages", chat=ANNA) if item["id"] == card)
        return shown["labels"] == [] and "Allowed once by" in shown["text"]

    with Gateway(telegram_home.path) as gateway:
        town.do("wait", chat=ANNA, contains=answer, after=card)
        # The card has a turn of its own in the outbox, beside the answer.
        eventually(closed, what="the closed card")
        assert gateway.end() == 0

    assert telegram_home.runs == [point] * runs


@requirement("fault.f4", "turn.resume.write_never_repeated")
@pytest.mark.parametrize("point", [FaultPoint.TOOL_STARTED, FaultPoint.TOOL_RETURNED])
def test_killed_around_a_call_that_only_reads_it_is_made_again(
    telegram_home: House, town: TelegramProcess, point: FaultPoint
) -> None:
    with dying_at(point, telegram_home) as gateway:
        said = town.do("say", chat=ANNA, text=f'call echo {{"text": "sea of {point}"}}')
        assert killed(gateway)

    with Gateway(telegram_home.path) as gateway:
        answer = town.do("wait", chat=ANNA, contains="Got:", after=said["id"])
        assert gateway.end() == 0

    assert f"sea of {point}" in answer["text"]


@requirement("fault.f7")
def test_killed_between_two_pieces_of_a_long_reply_it_goes_on_with_the_next(
    telegram_home: House, town: TelegramProcess
) -> None:
    words = [f"word{number:05d}" for number in range(390)]
    with dying_at(FaultPoint.DELIVERY_MARKED, telegram_home) as gateway:
        said = town.do("say", chat=ANNA, text=" ".join(words))
        assert killed(gateway)
        first = town.do("messages", chat=ANNA, after=said["id"])
        assert len(first) == 1

    with Gateway(telegram_home.path) as gateway:
        town.do("wait", chat=ANNA, contains=words[-1], after=said["id"])
        assert gateway.end() == 0

    shown = [item["text"] for item in town.do("messages", chat=ANNA, after=said["id"])]
    assert " ".join(shown).split()[2:] == words


@requirement("design.faults.hook")
def test_the_points_are_listed_and_a_fault_that_is_none_is_refused(house: House) -> None:
    listed = json.loads(hermes(house.path, "debug", "faults", "--json").stdout)
    assert [point["name"] for point in listed["points"]] == list(FaultPoint)
    assert listed["actions"] == ["kill", "raise", "hang", "slow"]

    house.configure(guided=True)
    with Gateway(house.path, env={"HERMES_FAULT": "nowhere:1:kill"}, ready=False) as gateway:
        assert gateway.wait() == 1
        assert gateway.stderr.startswith("hermes: HERMES_FAULT=nowhere:1:kill is no fault")
        assert gateway.stdout == ""
