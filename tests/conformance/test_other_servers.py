"""The host on servers that others wrote, from npm; `make conformance` installs them and runs this.

Each is of the handshake era and runs on the Node that came with the suite.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.domain.canonical import canonical
from gateway.domain.form import FieldKind, FormAction, FormAnswer
from gateway.domain.tools import CallState, ServerState, ToolCall, ToolResult
from mcp_host.server_config import ServerConfig
from tests.mcp_host.hosting import Person, Running, call_of, running

PACKAGES: Final = Path(__file__).resolve().parents[2] / ".conformance" / "node_modules"
NAMES: Final = ("everything", "filesystem", "memory")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        not all((PACKAGES / "@modelcontextprotocol" / f"server-{name}").exists() for name in NAMES),
        reason="the servers are not installed: make conformance does that",
    ),
]


def entry(name: str, *arguments: object, **fields: Any) -> ServerConfig:
    script = PACKAGES / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    args = [str(script), *map(str, arguments)]
    return ServerConfig.model_validate(
        {"command": str(PACKAGES / ".bin" / "node"), "args": args, **fields}
    )


async def call(
    host: Running,
    tool: str,
    arguments: Mapping[str, object],
    *,
    chat: str = "1",
    person: Person | None = None,
) -> ToolResult:
    wanted: ToolCall = call_of(tool, chat=chat)
    return await host.host.call(wanted, person or Person(canonical(dict(arguments))))


async def test_everything_is_listed_called_and_read() -> None:
    async with running(entry("everything")) as host:
        status = host.status()
        added = await call(host, "get_sum", {"a": 2, "b": 40})
        shaped = await call(host, "get_structured_content", {"location": "Chicago"})
        prompts = await call(host, "list_prompts", {})
        resources = await call(host, "list_resources", {})

    assert status.state is ServerState.READY
    assert "42" in added.text
    assert shaped.structured is not None
    assert {result.state for result in (added, shaped, prompts, resources)} == {CallState.OK}
    assert prompts.text
    assert "://" in resources.text


async def test_a_form_of_everything_is_asked_in_the_chat_of_its_call() -> None:
    nothing = canonical({})
    accepted = FormAnswer(action=FormAction.ACCEPT, content={"name": "Anna", "integer": 7})
    people = {"1": Person(nothing, form=accepted)}
    people["2"] = Person(nothing, form=FormAnswer(action=FormAction.DECLINE))
    async with running(entry("everything")) as host:
        results = {
            chat: await call(host, "trigger_elicitation_request", {}, chat=chat, person=person)
            for chat, person in people.items()
        }

    assert [len(person.forms) for person in people.values()] == [1, 1]
    assert "Anna" in results["1"].text
    assert '"decline"' in results["2"].text
    kinds = {field.kind for field in people["1"].forms[0].form.fields}
    assert kinds >= {FieldKind.TEXT, FieldKind.BOOLEAN, FieldKind.CHOICE, FieldKind.MULTI}


async def test_a_file_is_written_once_it_is_allowed_and_read_unasked(tmp_path: Path) -> None:
    note = {"path": str(tmp_path / "note.txt"), "content": "milk"}
    writer = Person(canonical(note))
    async with running(entry("filesystem", tmp_path, trust="untrusted")) as host:
        written = await call(host, "write_file", note, person=writer)
        reader = Person(canonical({"path": note["path"]}))
        read = await call(host, "read_text_file", {}, person=reader)
        outside = await call(host, "read_text_file", {"path": "/etc/passwd"})

    assert (written.state, read.text) == (CallState.OK, "milk")
    assert [len(person.approves) for person in (writer, reader)] == [1, 0]
    assert outside.state is CallState.ERROR


async def test_what_memory_was_told_is_there_after_a_reconnect(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    anna = {"name": "Anna", "entityType": "person", "observations": ["likes tea"]}
    async with running(entry("memory", env={"MEMORY_FILE_PATH": str(file)})) as host:
        await call(host, "create_entities", {"entities": [anna]})
        await host.host.reload("s")
        graph = await call(host, "read_graph", {})

    assert graph.structured is not None
    assert "likes tea" in json.dumps(graph.structured)
