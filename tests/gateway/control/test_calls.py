from pathlib import Path
from typing import Any

import pytest

from gateway.control.http import exchange
from gateway.domain.canonical import CanonicalJson
from gateway.domain.form import Form
from gateway.ports import Approver, FormRequest
from tests.fakes.office import Office, open_office
from tests.fakes.tools import FakeTools, tool
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio


def tools() -> FakeTools:
    async def asks(arguments: CanonicalJson, approver: Approver) -> str:
        form = Form(message="Sure?")
        answer = await approver.elicit(
            FormRequest(server="demo", server_sha="", tool="ask", form=form)
        )
        return f"{answer.action}: {answer.reason}"

    found = FakeTools()
    found.add(tool("list", read_only=True))
    found.add(tool("add"), gated=True)
    found.add(tool("ask"), asks)
    return found


async def call(office: Office, **body: object) -> tuple[int, dict[str, Any]]:
    async with exchange(office.path, "POST", "/v1/calls", body) as answer:
        return answer.status, dict(await answer.json())


@requirement("threat.s8", "case.ap6")
async def test_a_call_runs_through_the_gate_and_is_in_the_books(tmp_path: Path) -> None:
    arguments = {"text": "milk", "token": "canary"}
    async with open_office(tmp_path, tools=tools()) as office:
        free = await call(office, server="demo", tool="list", arguments={"b": 1, "a": 2})
        gated = await call(office, server="demo", tool="add", arguments=arguments)
        allowed = await call(office, server="demo", tool="add", arguments=arguments, allow=True)
        lines = await office.readers.books.audit(limit=9)

    assert (free[0], free[1]["state"]) == (200, "ok")
    assert (gated[1]["state"], "needs an approval" in gated[1]["text"]) == ("refused", True)
    assert allowed[1]["state"] == "ok"
    assert office.tools.ran == [
        ("list", '{"a":2,"b":1}'),
        ("add", '{"text":"milk","token":"canary"}'),
    ]
    assert [line.detail["state"] for line in lines] == ["ok", "refused", "ok"]
    assert lines[0].subject == "mcp__demo__add"
    assert lines[0].detail["arguments"] == {"text": "milk", "token": "•••• (6 chars)"}


async def test_a_server_that_asks_finds_nobody(tmp_path: Path) -> None:
    async with open_office(tmp_path, tools=tools()) as office:
        _, asked = await call(office, server="demo", tool="ask")

    assert asked["text"] == "cancel: nobody can be asked here"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"server": "demo", "tool": "gone"}, 404),
        ({"server": "other", "tool": "list"}, 404),
        ({"server": "demo"}, 400),
        ({"server": "demo", "tool": "list", "arguments": [1]}, 400),
        ({"server": "demo", "tool": "list", "arguments": {"a": float("inf")}}, 400),
    ],
)
async def test_a_call_that_is_none_is_refused(
    tmp_path: Path, body: dict[str, Any], status: int
) -> None:
    async with open_office(tmp_path, tools=tools()) as office:
        assert (await call(office, **body))[0] == status
        assert office.tools.ran == []
