"""What a line typed during a turn does where it does not wait, on a real terminal."""

from pathlib import Path

import pytest

from gateway.runtime.turn import INTERRUPTED
from tests.e2e.house import House, texts
from tests.support.chat import Chat
from tests.support.eventually import eventually
from tests.support.requirement import requirement


@pytest.fixture
def free(house: House) -> Path:
    """Lets the tool `hold` return, once it exists."""
    house.serve()
    return house.file("free")


def hold(house: House, chat: Chat, free: Path) -> str:
    """Ask for the tool that holds, and return the request once the model has it."""
    text = f'call hold {{"text": "{free}"}}'
    chat.say(text)
    eventually(lambda: bool(house.model.requests(text)), seconds=30, what="a request")
    return text


@requirement("busy.interrupt")
def test_a_line_interrupts_where_that_is_configured(house: House, free: Path) -> None:
    house.configure(gateway={"busy_mode": "interrupt"})
    with house.chat(terminal=True) as chat:
        hold(house, chat, free)
        chat.say("second")
        chat.expect(INTERRUPTED)
        chat.expect("You said: second")
        assert chat.end() == 0
        assert "Got" not in chat.seen


@requirement("busy.steer")
def test_a_line_steers_where_that_is_configured(house: House, free: Path) -> None:
    house.configure(gateway={"busy_mode": "steer"})
    with house.chat(terminal=True) as chat:
        held = hold(house, chat, free)
        chat.say("second")
        chat.say("/whoami")
        chat.expect("You are you")
        free.touch()
        chat.expect("You said: second")
        assert chat.end() == 0
    assert [texts(body, "user") for body in house.model.requests(held)] == [
        [held],
        [held, "second"],
    ]
