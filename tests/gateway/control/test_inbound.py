import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.errors import GatewayRefused, ModelRejected
from gateway.domain.question import Action
from tests.fakes.house import rows
from tests.fakes.model import ScriptedModel, SlowModel, calls_tool, says
from tests.fakes.office import LOCAL, PLACE, Office, kinds, of_kind, open_office
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ADD = "mcp__demo__add"


def gated() -> FakeTools:
    tools = FakeTools()
    tools.add(tool("add"), gated=True)
    return tools


async def take(lines: AsyncGenerator[Any], kind: str) -> dict[str, Any]:
    """Read up to the next line of a kind."""
    async with asyncio.timeout(10):
        async for line in lines:
            if line["type"] == kind:
                return dict(line)
    raise AssertionError(f"the stream ended without {kind}")


async def test_a_line_is_answered_on_its_stream(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        lines = await office.lines("hello")
        view = await office.readers.conversations.find(PLACE.session_key)

    assert kinds(lines) == ["accepted", "reply", "end"]
    assert lines[0]["conversation"] == PLACE.session_key == "agent:main:terminal:dm:local"
    assert lines[1]["text"] == "echo: hello"
    assert view is not None
    assert view.last_message is not None
    assert lines[1]["message_id"] == str(view.last_message.id)
    assert rows(tmp_path / "state.db", "SELECT author FROM message WHERE role = 'user'") == [
        (f"cli:{office.desk.about.uid}",)
    ]


async def test_a_command_is_answered_like_a_request(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        lines = await office.lines("/whoami")

    assert kinds(lines) == ["accepted", "reply", "end"]
    assert "role **admin**" in lines[1]["text"]
    assert lines[1]["message_id"] is None


async def test_a_turn_that_fails_says_so_before_the_end(tmp_path: Path) -> None:
    model = ScriptedModel([ModelRejected("m", "no"), says("fine")])

    async with open_office(tmp_path, model) as office:
        failed = await office.lines("hello")
        fine = await office.lines("again")

    assert kinds(failed) == ["accepted", "reply", "failed", "end"]
    assert kinds(fine) == ["accepted", "reply", "end"]


async def test_the_same_event_again_starts_nothing_new(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        await office.lines("hello", event_id="one")
        again = await office.lines("hello", event_id="one")
        other = await office.lines("hello", event_id="one", name="terminal:other")

    assert kinds(again) == ["accepted", "end"]
    assert kinds(other) == ["accepted", "reply", "end"]


async def test_a_card_is_decided_over_another_connection_and_the_stream_goes_on(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([calls_tool(ADD, text="milk", token="canary"), says("done")])
    tools = gated()

    async with open_office(tmp_path, model, tools=tools) as office:
        given = office.client.give(LOCAL, "add", event_id="e", interactive=True)
        async with given as lines:
            card = (await take(lines, "card"))["question"]
            await take(lines, "asking")
            assert tools.ran == []
            decided = await office.client.decision(card["short"], action=Action.ALLOW_ONCE)
            settled = await take(lines, "settled")
            rest = [dict(line) async for line in lines]

    assert card["arguments"] == {"text": "milk", "token": "•••• (6 chars)"}
    assert card["actions"] == ["allow-once", "allow-session", "allow-always", "deny"]
    assert (card["server"], card["tool"], card["kind"]) == ("demo", "add", "tool_call")
    assert (decided["resolved"], decided["approval_id"]) == (True, card["id"])
    assert (settled["id"], settled["state"]) == (card["id"], "allowed")
    assert settled["decided_by"] == f"cli:{office.desk.about.uid}"
    assert kinds(rest)[-2:] == ["reply", "end"]
    assert tools.ran == [("add", '{"text":"milk","token":"canary"}')]


async def test_where_nobody_can_answer_a_call_is_not_run_and_nobody_waits(tmp_path: Path) -> None:
    model = ScriptedModel([calls_tool(ADD, text="milk")])
    tools = gated()

    async with open_office(tmp_path, model, tools=tools) as office:
        lines = await office.lines("add", interactive=False)

    assert tools.ran == []
    assert of_kind(lines, "settled")["state"] == "cancelled"
    assert "nobody can be asked here" in of_kind(lines, "reply")["text"]


async def test_a_question_is_left_to_the_person_who_is_attached_as_well(tmp_path: Path) -> None:
    model = ScriptedModel([calls_tool(ADD, text="milk"), says("done")])
    tools = gated()

    async with (
        open_office(tmp_path, model, tools=tools) as office,
        office.client.follow(LOCAL, interactive=True) as person,
        office.client.give(LOCAL, "add", event_id="e", interactive=False) as lines,
    ):
        card = (await take(person, "card"))["question"]
        await take(lines, "asking")
        await office.client.decide(card["id"], action=Action.ALLOW_ONCE)
        assert (await take(lines, "reply"))["text"] == "done"
        await take(lines, "end")

    assert len(tools.ran) == 1


async def test_whoever_leaves_stops_nothing_and_finds_the_answer_stored(tmp_path: Path) -> None:
    model = SlowModel()

    async with open_office(tmp_path, model) as office:
        async with office.client.give(LOCAL, "hello", event_id="e", interactive=True) as lines:
            await take(lines, "accepted")
        await model.asked.acquire()
        model.gate.release()
        await office.readers.events.wait(await office.readers.events.head())
        view = await office.readers.conversations.find(PLACE.session_key)

    assert view is not None
    assert view.last_message is not None
    assert view.last_message.text == "re hello"


async def test_a_chat_that_attaches_again_is_shown_its_open_cards(tmp_path: Path) -> None:
    model = ScriptedModel([calls_tool(ADD, text="milk"), says("done")])

    async with open_office(tmp_path, model, tools=gated()) as office:
        async with office.client.give(LOCAL, "add", event_id="e", interactive=True) as lines:
            first = (await take(lines, "card"))["question"]
            await take(lines, "asking")
        async with office.client.follow(LOCAL, interactive=True) as lines:
            shown = (await take(lines, "card"))["question"]
            await take(lines, "asking")
            await office.client.decide(shown["id"], action=Action.DENY)
            await take(lines, "settled")
            assert (await take(lines, "reply"))["text"] == "done"
            await take(lines, "end")

    assert shown["id"] == first["id"]


async def test_each_end_says_of_what_it_is_the_end(tmp_path: Path) -> None:
    async with (
        open_office(tmp_path) as office,
        office.client.follow(LOCAL, interactive=True) as lines,
    ):
        assert (await take(lines, "end"))["given"] == 0
        for n in range(1, 4):
            accepted = of_kind(await office.lines("hello"), "accepted")
            assert accepted["given"] == n
            while (await take(lines, "end"))["given"] < n:
                continue


async def test_what_is_posted_meanwhile_is_shown_to_all_who_are_attached(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        await office.lines("hello")
        async with (
            office.client.follow(LOCAL, interactive=True) as one,
            office.client.follow(LOCAL, interactive=False) as two,
        ):
            await take(one, "end")
            await take(two, "end")
            await _send(office, "news")
            assert (await take(one, "reply"))["text"] == "news"
            assert (await take(two, "reply"))["text"] == "news"


async def test_a_message_behind_a_running_turn_says_that_it_waits(tmp_path: Path) -> None:
    model = SlowModel()

    async with (
        open_office(tmp_path, model) as office,
        office.client.give(LOCAL, "one", event_id="a", interactive=True) as first,
    ):
        await take(first, "accepted")
        await model.asked.acquire()
        async with office.client.give(LOCAL, "two", event_id="b", interactive=True) as second:
            assert (await take(second, "accepted"))["queued"] == 1
            model.gate.release()
            model.gate.release()
            await take(second, "end")


@pytest.mark.parametrize(
    ("client", "text", "event_id", "says"),
    [
        ("web:x", "hi", "e", "client must be terminal:<name>"),
        ("terminal:a/b", "hi", "e", "client must be terminal:<name>"),
        (LOCAL, "  ", "e", "text is missing"),
        (LOCAL, "hi", "", "event_id is missing"),
    ],
)
async def test_a_line_that_is_none_is_refused(
    tmp_path: Path, client: str, text: str, event_id: str, says: str
) -> None:
    async with open_office(tmp_path) as office:
        with pytest.raises(GatewayRefused, match=says):
            async with office.client.give(client, text, event_id=event_id, interactive=True):
                raise AssertionError("taken")


@requirement("cli.chat.attaches")
async def test_attached_chats_by_other_names_are_other_conversations(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        await office.lines("hello")
        lines = await office.lines("hello", name="terminal:second.window")

    assert lines[0]["conversation"] == "agent:main:terminal:dm:second.window"


async def _send(office: Office, text: str) -> None:
    from gateway.ports import SendRequest

    await office.client.send(SendRequest(target=LOCAL, text=text))
