"""Forms by every schema of the grammar in a real terminal chat: what the server gets is what was typed."""

import json
import re
from typing import Any

from tests.adapters.conformance.schemas import CASES, Case
from tests.e2e.house import House
from tests.support.chat import Chat
from tests.support.requirement import requirement

REVIEW = r"1\) Submit\n"
LISTS = {case.name for case in CASES if "'array'" in str(case.schema)}


@requirement("elicitation.form.types", "elicitation.form.invalid", "case.el1", "case.el3")
def test_every_schema_is_answered_in_a_terminal_with_what_satisfies_it(house: House) -> None:
    house.serve(trust="full")
    house.configure(guided=True)
    with house.chat() as chat:
        for case in CASES:
            chat.say(f"/call ask {json.dumps({'text': json.dumps(case.params)})}")
            for label, given in case.answers:
                asked(chat, label)
                for text, says in case.mistakes(label):
                    say(chat, case, text)
                    chat.expect(re.escape(says))
                    asked(chat, label)
                say(chat, case, given)
            chat.expect(REVIEW)
            chat.say("submit")
            got = json.loads(chat.expect(r'\n(\{"action": [^\n]*\})\n')[1])
            assert got == {"action": "accept", "content": case.content}, case.name
        assert chat.end() == 0


def asked(chat: Chat, label: str) -> None:
    chat.expect(re.escape(label) + r"( \([^)\n]*\))?\n")


def say(chat: Chat, case: Case, given: str | list[str] | None) -> None:
    """Type an answer; in a list one number ticks an option, and more are the whole answer."""
    lines = given if isinstance(given, list) else ["skip" if given is None else given]
    for line in lines:
        chat.say(line)
    if case.name in LISTS and lines[0].isdecimal():
        chat.say("Done")


def test_a_form_that_cannot_be_asked_is_declined_with_what_is_wrong_in_it(house: House) -> None:
    house.serve(trust="full")
    house.configure(guided=True)
    odd: dict[str, Any] = {
        "message": "?",
        "requestedSchema": {"type": "object", "properties": {"a": {}}},
    }
    with house.chat() as chat:
        chat.say(f"/call ask {json.dumps({'text': json.dumps(odd)})}")
        shown = chat.expect(r'"action": "decline".*?\n.*?\n')[0]
        assert 'A question of box was declined: the field "a" has no type.' in shown
        assert chat.end() == 0
    assert 'box asked something that was declined: the field "a" has no type' in chat.seen
