"""A bare machine: no configuration, no model, no token; the bundled demo server and a real chat."""

import json
import re
from typing import Final

from tests.e2e.house import CARD, House
from tests.support.requirement import requirement

ANSWERED: Final = {
    "/help": "`/call TOOL {json}`: Call a tool directly",
    "/whoami": "You are you (`terminal:local`), role **admin**",
    "/status": "- State: idle",
    "/tools note": "`mcp__notes__add_note`",
    "/mcp": "**notes** ready, 3 tools",
    "/mcp notes": "**notes** ready, 3 tools",
    "/mcp nothing": "There is no MCP server nothing. Known: notes.",
    "/reload-mcp": "Nothing has changed.",
    "/approvals": "Nothing waits for a decision here.",
    "/approve zzzz": "There is no question zzzz",
    "/stop": "Nothing is running here.",
    "/new": "A new session has started",
    "/statu": "There is no command /statu. Did you mean /status?",
    "/call": "Usage: /call TOOL {json}",
    "/call add_note {": "The arguments are not valid JSON",
    "/call nothing {}": "There is no tool nothing. /tools lists them.",
    "hello?": "I found no tool for “hello?”",
}
"""What is typed, and a part of what is said."""

REVIEW = r"1\) Submit\n2\) Edit\n3\) Decline\n4\) Cancel\n"


@requirement(
    "cli.chat.in_process",
    "cli.demo_server",
    "guided.suggests",
    "guided.completes",
    "guided.call",
)
def test_a_first_run_leads_from_words_to_a_stored_note_and_the_second_has_it_and_answers_every_command(
    house: House,
) -> None:
    with house.chat(terminal=True) as chat:
        chat.expect("Wrote .*config.yaml: guided mode, with the bundled demo server")
        chat.say("add a note please")
        chat.expect(r"Which tool shall I use\?.*?1\) notes · add_note — .*?\n\d\) Cancel\n")
        assert "2) notes · " in chat.seen
        chat.press("1")
        chat.expect(r"notes · add_note\n.*?title \(1 of 2\)")
        chat.say("Groceries")
        chat.expect(r"text \(2 of 2\)")
        chat.say("milk")
        chat.expect(f"title: Groceries\ntext: milk\n.*?{REVIEW}")
        chat.press("1")
        shown = chat.expect(f"add_note\nStore a new note.*?{CARD}")[0]
        assert json.loads(shown[shown.rindex("{") : shown.rindex("}") + 1]) == {
            "title": "Groceries",
            "text": "milk",
        }
        chat.press("1")
        chat.expect('Stored the note "Groceries"')
        assert chat.end() == 0

    config = (house.path / "config.yaml").read_text()
    with house.chat() as chat:
        chat.say("list notes")
        chat.expect(r"1\) notes · list_notes — ")
        chat.say("1")
        chat.expect(r"text \(optional\)")
        chat.say("skip")
        chat.expect(REVIEW)
        chat.say("1")
        chat.expect("- Groceries: milk")

        chat.say('/call mcp__notes__add_note {"title": "By alias", "text": "1"}')
        chat.expect(CARD)
        chat.say("1")
        chat.expect('Stored the note "By alias"')
        chat.say('/call list_notes {"text": "alias"}')
        chat.expect("- By alias: 1")
        chat.say("/call plan_event")
        chat.expect("title")
        chat.say("Party")
        chat.expect(REVIEW)
        chat.say("1")
        chat.expect(CARD)
        chat.say("allow once")
        chat.expect(r'When is "Party".*?Date \(1 of 4\)')
        chat.say("2026-12-31")
        chat.expect(r"Kind of event \(2 of 4\).*?2\) Deadline")
        chat.say("meeting")
        chat.expect(r"Remind me the day before \(3 of 4\)")
        chat.say("yes")
        chat.expect(r"Note \(4 of 4, optional\)")
        chat.say("skip")
        chat.expect(f"Kind of event: Meeting\n.*?{REVIEW}")
        chat.say("1")
        chat.expect('Planned "Party": Meeting, on 2026-12-31, with a reminder')
        for line, told in ANSWERED.items():
            chat.say(line)
            chat.expect(re.escape(told))
        assert chat.end() == 0
    assert (house.path / "config.yaml").read_text() == config
    assert "Traceback" not in house.stderr + house.log
