"""A person who types on while the bot works or asks: nothing is lost, and one turn runs at a time."""

from gateway.runtime.busy import QUEUED
from gateway.runtime.turn import STOPPED
from tests.e2e.house import CARD, House, texts
from tests.support.eventually import eventually
from tests.support.requirement import requirement


@requirement(
    "busy.none_lost", "busy.queue_acknowledged", "fault.f28", "approval.gate.never_runs_undecided"
)
def test_lines_typed_during_a_turn_are_answered_in_order_and_a_card_takes_no_other_words(
    house: House,
) -> None:
    house.serve()
    house.configure()
    free = house.file("free")
    held = f'call hold {{"text": "{free}"}}'
    with house.chat(terminal=True) as chat:
        chat.say(held)
        eventually(lambda: bool(house.model.requests(held)), seconds=30, what="a request")
        chat.say("\r".join(["second", "third", "fourth", "/whoami"]))
        chat.expect("You are you")
        assert "Got" not in chat.seen
        assert QUEUED in chat.seen
        free.touch()
        chat.expect("Got: released")
        chat.expect("You said: fourth")

        chat.say('call write {"text": "x"}')
        chat.expect(CARD)
        chat.say("is it done?")
        chat.expect("Answer with a number from 1 to 4, or a label")
        chat.press("4")
        chat.expect("Got: .*was not run: denied by you")

        chat.say('call never {"text": ""}')
        eventually(lambda: "never" in house.runs, what="the tool runs")
        chat.say("/stop")
        chat.expect(STOPPED)
        chat.say("/stop")
        chat.expect("Nothing is running here")
        assert chat.seen.count("Stopped") == 1
    requests = [texts(body, "user") for body in house.model.requests(held)]
    said = [held, "second", "third", "fourth"]
    assert requests[:2] == [[held], [held]]
    assert requests[2] == said
    assert house.runs == ["never"]
