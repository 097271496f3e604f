"""Forms of MCP servers in a real chat: filled in, corrected, refused, left; in both protocol eras."""

import json

import pytest

from tests.e2e.house import CARD, House
from tests.support.chat import Chat
from tests.support.requirement import requirement

REVIEW = r"1\) Submit\n2\) Edit\n3\) Decline\n4\) Cancel\n"
UNASKED = {"policy": {"order": "allow"}}


def order(chat: Chat) -> None:
    """Call the tool that asks for a form, and wait for its first field."""
    chat.say('/call order {"text": "Which one?"}')
    chat.expect(r"box · order\nWhich one\?\n\nDay \(1 of 3\)\n.*?type: decline, cancel\n")


def answer(chat: Chat) -> object:
    """Return what the server got."""
    return json.loads(chat.expect(r'\{"action": .*\}')[0])


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
@requirement("elicitation.form.types", "design.terminal.pipe")
def test_a_form_is_corrected_edited_reviewed_and_answered_or_refused(
    house: House, *, terminal: bool
) -> None:
    house.serve(tools=UNASKED)
    house.configure(guided=True)
    with house.chat(terminal=terminal) as chat:
        order(chat)
        chat.say("tomorrow")
        chat.expect(r"\n[^\n]*date[^\n]*\n\nDay \(1 of 3\)\n")
        chat.say("2026-12-24")
        chat.expect(r"Size \(2 of 3\)\n.*?1\) s\n2\) m\n3\) Decline\n")
        chat.say("7")
        chat.expect("Answer with a number from 1 to 4, or a label")
        chat.say("2")
        chat.expect(
            r"Gift \(3 of 3, optional\)\n.*?1\) Yes\n2\) No\n3\) Use default: No\n4\) Skip\n"
        )
        chat.say("skip")
        assert "Gift: (left out)" in chat.expect(f"Day: 2026-12-24\nSize: m\n.*?{REVIEW}")[0]
        chat.say("2")
        chat.expect(r"Which field should change\?.*?2\) Size\n")
        chat.say("Size")
        chat.expect(r"Size \(2 of 3\)\n.*?1\) s\n")
        chat.say("s")
        chat.expect(f"Day: 2026-12-24\nSize: s\n.*?{REVIEW}")
        chat.say("submit")
        chat.expect("order: Submitted by you")
        assert answer(chat) == {
            "action": "accept",
            "content": {"day": "2026-12-24", "size": "s"},
        }

        order(chat)
        chat.say("decline")
        chat.expect("order: Declined by you")
        assert answer(chat) == {"action": "decline"}

        order(chat)
        chat.say("Cancel")
        chat.expect("order: Cancelled by you")
        assert answer(chat) == {"action": "cancel"}

        order(chat)
        chat.say("/stop")
        chat.expect("order: No longer waiting: stopped")
        chat.say("/status")
        chat.expect("Waiting: 0 messages, 0 questions")
    assert house.runs == ["order"] * 4


@requirement("elicitation.url_mode")
def test_a_link_is_given_once_somebody_agreed_to_its_host(house: House) -> None:
    house.serve(trust="full", elicitation={"url": "ask"})
    house.configure(guided=True)
    with house.chat() as chat:
        for line, told in (("open link", "accept"), ("decline", "decline")):
            chat.say("/call order_url {}")
            card = chat.expect(r"box · order_url\n.*?1\) Open link\n2\) Decline\n3\) Cancel\n")[0]
            assert '"host": "example.com"' in card
            assert '"url": "https://example.com/x"' in card
            chat.say(line)
            if told == "accept":
                chat.expect("The link of box: <https://example.com/x>")
            chat.expect(rf"\n{told}\n")
        assert chat.end() == 0


@requirement("elicitation.form.types", "approval.gate")
def test_a_server_of_the_newer_era_is_allowed_and_answered_in_the_same_words(
    house: House,
) -> None:
    house.serve(script="modern_server.py")
    house.configure(guided=True)
    with house.chat() as chat:
        chat.say('/call write {"text": "once"}')
        chat.expect(f"box · write\n.*?{CARD}")
        assert not house.runs
        chat.say("1")
        chat.expect("written")
        chat.say('/call order {"text": "twice"}')
        chat.expect(CARD)
        chat.say("Allow once")
        for size, key in (("m", "first"), ("s", "second"), ("m", "third")):
            chat.expect(rf"box · order\n{key}\?\n\nSize\n.*?2\) m\n")
            chat.say(size)
            chat.expect(REVIEW)
            chat.say("1")
        found = json.loads(chat.expect(r"\n(\{[^\n]*second[^\n]*\})\n")[1])
        assert found["second"] == {"action": "accept", "content": {"size": "s"}}
    assert house.runs == ["once", "order"]
