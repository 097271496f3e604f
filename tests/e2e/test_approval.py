"""The main flow through real processes: a request, a card, a decision, a run, a reply."""

import json
from pathlib import Path

import pytest

from tests.e2e.house import CARD, House, texts
from tests.support.chat import Chat
from tests.support.eventually import eventually
from tests.support.requirement import requirement


def add(chat: Chat, text: str) -> str:
    """Have the model call the write tool; return the card that came instead."""
    chat.say(f"call write {json.dumps({'text': text})}")
    return chat.expect(f"box · write\n.*?{CARD}")[0]


def call(chat: Chat, text: str) -> None:
    """Call the write tool without a model."""
    chat.say(f"/call write {json.dumps({'text': text})}")


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
@requirement("approval.gate", "approval.gate.never_runs_undecided", "cli.chat.in_process")
def test_a_call_runs_once_as_shown_after_it_was_allowed_and_never_otherwise(
    house: House, *, terminal: bool
) -> None:
    house.serve("--cancellations", str(house.file("cancelled")))
    house.configure()
    with house.chat(terminal=terminal) as chat:
        chat.say('call write {"text": "milk", "more": {"size": [1, 2.5, null]}}')
        shown = chat.expect(f"box · write\n.*?{CARD}")[0]
        assert "Appends the text to the runs file" in shown
        given = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
        assert given == {"text": "milk", "more": {"size": [1, 2.5, None]}}
        assert "Asked by you" in shown
        assert not house.runs
        chat.say("1")
        chat.expect(r"write: Allowed once by you · \d\d:\d\d")
        chat.expect("Got: 1")
        assert house.runs == ["milk"]

        add(chat, "denied")
        chat.say("deny")
        chat.expect("write: Denied by you")
        chat.expect("Got: .*mcp__box__write was not run: denied by you")

        add(chat, "stopped")
        chat.say("/stop")
        chat.expect("write: No longer waiting: stopped")
        chat.say("hello")
        chat.expect("You said: hello")

        add(chat, "for the session")
        chat.say("2")
        chat.expect("Got: 2")
        chat.say('call write {"text": "same session"}')
        chat.expect("Got: 3")
        chat.say("/new")
        chat.expect("A new session has started")
        add(chat, "new session")
        chat.say("Deny")
        chat.expect("Got: .*not run")
        assert house.runs == ["milk", "for the session", "same session"]
        if terminal:
            stop_a_running_tool(house, chat)
        assert chat.end() == 0


def stop_a_running_tool(house: House, chat: Chat) -> None:
    """Change one's mind while the tool runs: its server is told, the model is not asked again."""
    free = house.file("free")
    chat.say(f'call hold_write {{"text": "{free}"}}')
    chat.expect(f"box · hold_write\n.*?{CARD}")
    chat.press("1")
    eventually(lambda: "hold" in house.runs, what="the tool runs")
    chat.say("/stop")
    chat.expect("Stopped")
    eventually(lambda: bool(house.lines("cancelled")), what="the server is told")
    chat.say("still there?")
    chat.expect("You said: still there")
    assert house.runs.count("hold") == 1
    requests = house.model.requests(f'call hold_write {{"text": "{free}"}}')
    assert [texts(body, "user")[-1] for body in requests].count("still there?") == 1
    assert len(requests) == 2


@requirement("approval.gate")
def test_always_allowed_holds_after_a_restart_until_the_tool_changes(
    house: House, tmp_path: Path
) -> None:
    described = tmp_path / "descriptions.json"
    described.write_text("{}")
    house.serve("--describe", str(described))
    house.configure(guided=True)
    with house.chat() as chat:
        call(chat, "first")
        card = chat.expect(rf"ID (\w+)\n{CARD}")
        chat.say("/approvals")
        chat.expect(rf"`{card[1]}` box · write, asked by you, \d+ s left")
        chat.say("Always allow")
        chat.expect("Always allowed by you.*\n1\n")
        call(chat, "second")
        chat.expect("2\n")
    with house.chat() as chat:
        call(chat, "after a restart")
        chat.expect("3\n")
        described.write_text('{"write": "Does something else now."}')
        chat.say("/reload-mcp box")
        chat.expect("Reloaded")
        call(chat, "changed")
        assert "Does something else now." in chat.expect(CARD).string
        chat.say("4")
        chat.expect("write was not run: denied by you")
        chat.say("/approvals")
        chat.expect("Nothing waits for a decision here")
    assert house.runs == ["first", "second", "after a restart"]


@requirement("approval.gate", "case.ap4", "approval.gate.never_runs_undecided")
def test_whatever_does_not_say_that_it_only_reads_waits_and_an_unanswered_card_runs_nothing(
    house: House,
) -> None:
    house.serve(trust="Untrustd")
    house.configure(guided=True, approvals={"timeout": 1})
    with house.chat() as chat:
        for tool in ("write", "write_quietly", "write_again", "write_bare"):
            chat.say(f'/call {tool} {{"text": "x"}}')
            chat.expect(f"box · {tool}\n.*?{CARD}")
            if tool == "write_bare":
                break
            chat.say("deny")
            chat.expect(f"mcp__box__{tool} was not run: denied by you")
        chat.expect("write_bare: Expired, not run: no answer in 1 s")
        chat.expect("mcp__box__write_bare was not run: no answer in 1 s")
        chat.say('/call echo {"text": "reads only"}')
        chat.expect("reads only")
    assert not house.runs
    assert "trust: is neither full nor untrusted" in house.stderr
