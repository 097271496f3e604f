"""Any text through a real chat: bad bytes, very long lines, words that would steer the terminal."""

import re

from tests.e2e.house import CARD, House
from tests.soak.ledger import reading
from tests.support.chat import Chat
from tests.support.requirement import requirement

STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(chat: Chat) -> str:
    """Return all that reached the terminal, as it was."""
    return chat.raw.decode("utf-8")


@requirement("threat.s22", "store.any_text")
def test_any_line_is_answered_and_nothing_from_outside_steers_the_terminal(house: House) -> None:
    house.serve()
    house.serve("--exit-at-start", "3", name="dies")
    house.configure()
    with house.chat() as chat:
        chat.say("bad \udcff byte")
        chat.expect("You said: bad . byte")
        chat.say("nul \0 and \x1b[31mred")
        chat.expect("You said: nul  and \\[31mred")
        long = "long " + "x" * 1_000_000 + " end"
        chat.say(long)
        chat.expect(r"You said: long x+\n\[cut: \d+ characters left out\]")
        chat.say('/call huge {"text": "90000"}')
        chat.expect("z{90000}\n")

        chat.say('call steer {"text": ""}')
        chat.expect(r"Got: before.*after\n")
        chat.say(r'call steer_write {"text": "a\u001b[31m\u0007\u202eb"}')
        card = chat.expect(CARD).string
        assert r"\u001b[31m\u0007\u202eb" in card
        assert "The same, counting its runs" in card
        chat.say("1")
        chat.expect("Got: before.*after\n")
        chat.say("/tools steer")
        chat.expect(
            "`mcp__box__steer`.*`mcp__box__steer_write`|`mcp__box__steer_write`.*`mcp__box__steer`"
        )
        chat.say("/mcp dies")
        chat.expect("no licence")
        assert STEERS.search(shown(chat)) is None
    assert STEERS.search(house.log) is None
    assert house.runs == ["a\x1b[31m\x07\u202eb"]
    with reading(house.path) as database:
        query = "SELECT count(*) FROM message WHERE role = 'user' AND body = ?"
        assert database.execute(query, (long,)).fetchone() == (1,)
