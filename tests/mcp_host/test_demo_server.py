"""The demo server, spoken to by the SDK's own client: as a real process, and in this one."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as wire
import pytest
from mcp import Client, StdioServerParameters

from mcp_host.demo_server import BadRequest, DemoServer, Notebook
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
ANSWER: dict[str, Any] = {"date": "2026-12-31", "kind": "trip", "remind": True, "note": "pack"}


class Person:
    """Answers every form the same way and keeps what was asked."""

    def __init__(self, action: str = "accept", content: Mapping[str, Any] | None = None) -> None:
        self._result = wire.ElicitResult.model_validate({"action": action, "content": content})
        self.asked: list[wire.ElicitRequestParams] = []

    async def answer(self, context: Any, params: wire.ElicitRequestParams) -> wire.ElicitResult:
        del context
        self.asked.append(params)
        return self._result


@asynccontextmanager
async def demo(
    notes: Path, *, era: str = "legacy", person: Person | None = None
) -> AsyncGenerator[Client]:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mcp_host.demo_server"],
        env={"HERMES_DEMO_NOTES": str(notes)},
    )
    answer = None if person is None else person.answer
    async with Client(parameters, mode=era, elicitation_callback=answer) as client:
        yield client


@asynccontextmanager
async def inside(*, era: str = "legacy", person: Person | None = None) -> AsyncGenerator[Client]:
    answer = None if person is None else person.answer
    server = DemoServer(Notebook(None)).build()
    async with Client(server, mode=era, elicitation_callback=answer) as client:
        yield client


def said(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


@requirement("cli.demo_server")
@ERAS
async def test_it_offers_notes_to_read_a_write_tool_and_a_form(era: str, tmp_path: Path) -> None:
    async with demo(tmp_path / "notes.json", era=era) as client:
        listed = await client.list_tools()

    hints = {
        tool.name: tool.annotations and tool.annotations.read_only_hint for tool in listed.tools
    }
    assert hints == {"list_notes": True, "add_note": False, "plan_event": False}


@requirement("cli.demo_server")
async def test_a_note_that_was_added_is_listed_also_by_the_next_process(tmp_path: Path) -> None:
    notes = tmp_path / "deep" / "notes.json"
    async with demo(notes) as client:
        empty = await client.call_tool("list_notes", {})
        await client.call_tool("add_note", {"title": "Milk", "text": "two litres"})
        await client.call_tool("add_note", {"title": "Bread", "text": "dark"})
    async with demo(notes, era="2026-07-28") as client:
        all_of_them = await client.call_tool("list_notes", {})
        filtered = await client.call_tool("list_notes", {"text": "MILK"})

    assert said(empty) == "There are no notes."
    assert said(all_of_them) == "- Bread: dark\n- Milk: two litres"
    assert [note["title"] for note in filtered.structured_content["notes"]] == ["Milk"]


@requirement("cli.demo_server")
@ERAS
async def test_an_event_is_planned_with_the_answers_of_its_form(era: str, tmp_path: Path) -> None:
    person = Person("accept", ANSWER)
    async with demo(tmp_path / "notes.json", era=era, person=person) as client:
        planned = await client.call_tool("plan_event", {"title": "Rome"})
        listed = await client.call_tool("list_notes", {})

    schema = person.asked[0].model_dump(by_alias=True)["requestedSchema"]
    assert list(schema["properties"]) == ["date", "kind", "remind", "note"]
    assert schema["required"] == ["date", "kind", "remind"]
    assert said(planned) == 'Planned "Rome": Trip, on 2026-12-31, with a reminder, pack.'
    assert said(listed) == "- Rome: Trip, on 2026-12-31, with a reminder, pack"
    assert len(person.asked) == 1


@ERAS
@pytest.mark.parametrize(
    ("action", "word"), [("decline", "was declined"), ("cancel", "was cancelled")]
)
async def test_a_form_that_is_not_answered_plans_nothing_and_says_so(
    era: str, action: str, word: str
) -> None:
    async with inside(era=era, person=Person(action)) as client:
        planned = await client.call_tool("plan_event", {"title": "Rome"})
        listed = await client.call_tool("list_notes", {})

    assert said(planned) == f'"Rome" was not planned: the form {word}.'
    assert not planned.is_error
    assert said(listed) == "There are no notes."


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("add_note", {"text": "x"}, "title is missing"),
        ("add_note", {"title": "x", "text": 5}, "text must be a text"),
        ("plan_event", {"title": "x"}, "this client shows none"),
        ("drop_notes", {}, "no such tool"),
    ],
)
async def test_a_bad_call_is_an_error_in_words(
    tool: str, arguments: dict[str, object], words: str
) -> None:
    async with inside() as client:
        result = await client.call_tool(tool, arguments)

    assert result.is_error
    assert words in said(result)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({**ANSWER, "date": "31.12.2026"}, "date must be"),
        ({**ANSWER, "kind": "party"}, "kind must be"),
        ({"date": "2026-12-31", "kind": "trip"}, "remind must be"),
    ],
)
async def test_an_answer_that_does_not_fit_the_form_plans_nothing(
    content: dict[str, object], words: str
) -> None:
    async with inside(person=Person("accept", content)) as client:
        result = await client.call_tool("plan_event", {"title": "Rome"})
        listed = await client.call_tool("list_notes", {})

    assert result.is_error
    assert words in said(result)
    assert said(listed) == "There are no notes."


@pytest.mark.parametrize("how", ["EOF", "SIGTERM", "SIGINT"])
def test_it_ends_at_once_also_with_a_form_open(how: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mcp_host.demo_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "HERMES_DEMO_NOTES": str(tmp_path / "notes.json")},
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        messages: list[dict[str, Any]] = [
            {
                "id": 1,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"elicitation": {}},
                    "clientInfo": {"name": "test", "version": "0"},
                },
            },
            {"method": "notifications/initialized"},
            {
                "id": 2,
                "method": "tools/call",
                "params": {"name": "plan_event", "arguments": {"title": "x"}},
            },
        ]
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
        assert "protocolVersion" in process.stdout.readline()
        assert "elicitation/create" in process.stdout.readline()

        if how == "EOF":
            process.stdin.close()
        else:
            process.send_signal(getattr(signal, how))

        process.wait(timeout=5)


def test_a_damaged_notes_file_is_reported_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    path.write_text("{broken")
    notebook = Notebook(path)

    with pytest.raises(BadRequest, match="cannot be read"):
        notebook.add(title="a", text="b")

    assert path.read_text() == "{broken"


def test_notes_without_a_file_live_in_memory() -> None:
    notebook = Notebook(None)

    notebook.add(title="a", text="lone \ud800 surrogate")

    assert [note.title for note in notebook.all()] == ["a"]


def test_a_note_of_any_text_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    Notebook(path).add(title="a", text="NUL \0, lone \ud800 surrogate, 🏴")

    assert Notebook(path).all()[0].text == "NUL \0, lone \ud800 surrogate, 🏴"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["notes.json", "notes.json.lock"]
