"""A chat of its own process takes up what changes in the files, as the service does."""

import pytest

from tests.e2e.house import House
from tests.support.eventually import eventually


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_a_server_that_is_added_is_there_for_the_next_message(
    house: House, *, terminal: bool
) -> None:
    house.configure()
    with house.chat(terminal=terminal) as chat:
        chat.say('call write {"text": "early"}')
        chat.expect("Got: .*no tool")
        house.serve(trust="full")
        house.configure()
        eventually(lambda: "box: connecting -> ready" in house.log, what="the added server")
        chat.say('call write {"text": "milk"}')
        chat.expect("Got: 1")
        assert house.runs == ["milk"]

        del house.servers["box"]
        house.configure()
        eventually(lambda: "removed box" in house.log, what="the end of the server")
        chat.say('call write {"text": "late"}')
        chat.expect("Got: .*no tool")
        assert chat.end() == 0
    assert house.runs == ["milk"]
