"""Files in both directions, between a person on Telegram and the model, through the real service."""

import base64
import json
import signal
import stat
from collections.abc import Generator
from typing import Any

import pytest

from tests.e2e.house import House, texts
from tests.e2e.on_telegram import ANNA, configure, telegram_with_anna
from tests.fakes.pictures import png
from tests.fakes.telegram.process import TelegramProcess
from tests.support.eventually import eventually
from tests.support.gateway import Gateway
from tests.support.requirement import requirement


@pytest.fixture(scope="module")
def town() -> Generator[TelegramProcess]:
    with telegram_with_anna() as running:
        yield running


def send(town: TelegramProcess, kind: str, data: bytes, **more: object) -> int:
    """Let Anna send a file; return the id of her message."""
    encoded = base64.b64encode(data).decode()
    found: int = town.do("send_file", chat=ANNA, kind=kind, data=encoded, **more)["id"]
    return found


def pictures(body: Any) -> list[str]:
    """The pictures a request shows, as the wire has them."""
    return [
        part["image_url"]["url"]
        for item in body["messages"]
        if isinstance(item["content"], list)
        for part in item["content"]
        if part["type"] == "image_url"
    ]


def recorded(house: House) -> list[Any]:
    """Every request to the model so far."""
    lines = house.model.record.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["body"] for line in lines]


def sent_files(town: TelegramProcess) -> list[str]:
    """How the files show that the bot has sent."""
    found = town.do("messages", chat=ANNA)
    return [next(iter(item["media"])) for item in found if item["by_bot"] and item["media"]]


@requirement("platform.telegram.attachments")
def test_a_picture_and_a_text_file_reach_the_model_and_the_limit_is_explained(
    house: House, town: TelegramProcess
) -> None:
    configure(house, town)
    with Gateway(house.path):
        seen = send(town, "photo", png(), name="cat.png", media_type="image/png", caption="a cat")
        town.do("wait", chat=ANNA, contains="You said: a cat", after=seen)
        read = send(town, "document", b"milk, eggs", name="list.txt", media_type="text/plain")
        town.do("wait", chat=ANNA, contains="milk, eggs", after=read)
        large = send(town, "document", b"x", name="film.mkv", size=25_000_000)
        said = "I could not take film.mkv: it has 25 MB, and 20 MB is the limit."
        town.do("wait", chat=ANNA, contains=said, after=large)
        town.do("wait", chat=ANNA, contains="not available: it has 25 MB", after=large)

    about = [
        body for body in recorded(house) if any("a cat" in each for each in texts(body, "user"))
    ]
    whole = base64.b64encode(png()).decode()
    assert pictures(about[0]) == [f"data:image/png;base64,{whole}"]
    kept = sorted((house.path / "media").iterdir())
    assert [path.suffix for path in kept] == [".jpg", ".txt"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}


@requirement("platform.telegram.attachments")
@pytest.mark.parametrize("point", ["file.fetching", "file.kept"])
def test_a_file_is_fetched_after_a_kill_in_the_middle(
    house: House, town: TelegramProcess, point: str
) -> None:
    configure(house, town)
    with Gateway(house.path, env={"HERMES_FAULT": f"{point}:1:kill"}) as gateway:
        sent = send(town, "document", f"words of {point}".encode(), name="note.txt")
        assert gateway.wait() == -signal.SIGKILL
    with Gateway(house.path):
        town.do("wait", chat=ANNA, contains=f"words of {point}", after=sent)

    assert len(list((house.path / "media").glob("in-*"))) == 1


@requirement("platform.telegram.attachments")
def test_a_picture_of_a_tool_is_sent_with_the_reply(house: House, town: TelegramProcess) -> None:
    house.serve()
    configure(house, town)
    before = len(sent_files(town))
    with Gateway(house.path):
        said = town.do("say", chat=ANNA, text="call rich {}")
        town.do("wait", chat=ANNA, contains="Got: 1 item", after=said["id"])
        eventually(lambda: len(sent_files(town)) > before)

    # Its picture and its resource hold the same, and that is sent once.
    assert sent_files(town)[before:] == ["photo"]


@requirement("platform.telegram.attachments")
def test_an_album_gets_one_answer(house: House, town: TelegramProcess) -> None:
    configure(house, town)
    with Gateway(house.path):
        first = send(town, "photo", png(), caption="three of them", album="9")
        send(town, "photo", png(), album="9")
        last = send(town, "photo", png(), album="9")
        answer = town.do("wait", chat=ANNA, contains="You said: [attached image", after=last)
        town.do("say", chat=ANNA, text="and now")
        town.do("wait", chat=ANNA, contains="You said: and now", after=last)
        replies = [
            item["id"]
            for item in town.do("messages", chat=ANNA)
            if item["by_bot"] and item["id"] > first
        ]

    assert len(replies) == 2
    assert replies[0] == answer["id"]
    # Each picture was a message of its own to the model, in one request.
    bodies = [body for body in recorded(house) if "three of them" in "".join(texts(body, "user"))]
    assert len(pictures(bodies[0])) == 3


@requirement("platform.telegram.attachments", "fault.f6")
def test_a_picture_sent_before_a_kill_is_found_and_not_sent_again(
    house: House, town: TelegramProcess
) -> None:
    house.serve()
    configure(house, town, streaming=False)
    before = len(sent_files(town))
    with Gateway(house.path, env={"HERMES_FAULT": "delivery.sent:1:kill"}) as gateway:
        town.do("say", chat=ANNA, text="call rich {}")
        assert gateway.wait() == -signal.SIGKILL
    with Gateway(house.path):
        said = town.do("say", chat=ANNA, text="still there?")
        town.do("wait", chat=ANNA, contains="You said: still there?", after=said["id"])

    assert sent_files(town)[before:] == ["photo"]
