import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.control.http import exchange
from gateway.domain.errors import GatewayRefused
from gateway.domain.question import Action, ApproverPolicy, Approvers, Surface
from gateway.runtime.config import ApprovalsConfig
from mcp_host.bridge.config import BridgeConfig
from tests.fakes.house import rows
from tests.fakes.loopback import press, token_of
from tests.fakes.model import ScriptedModel, calls_tool, says
from tests.fakes.office import Office, open_office
from tests.fakes.tools import FakeTools, tool
from tests.support.chat import ROOT
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

ADD = "mcp__demo__add"
CARD = "SELECT id FROM question ORDER BY created_at"


@asynccontextmanager
async def asked(
    home: Path, *, times: int = 1, bridge_decides: bool = True, quorum: int = 1
) -> AsyncGenerator[tuple[Office, str]]:
    """Let Anna's agent ask to run a tool in the chat; yields the id of the newest question."""
    script = [reply for n in range(times) for reply in (calls_tool(ADD, n=n), says(f"done {n}"))]
    tools = FakeTools()
    tools.add(tool("add"), gated=True)
    config = ApprovalsConfig(
        quorum=quorum, approvers=Approvers(policy=ApproverPolicy.LIST, ids=("loop:1", "loop:2"))
    )
    async with open_office(
        home,
        ScriptedModel(script),
        tools=tools,
        approvals=config,
        bridge=BridgeConfig(allow_approvals=bridge_decides),
    ) as office:
        await office.say("add")
        await office.chat.until(lambda: len(office.chat.cards()) == 1)
        yield office, rows(home / "state.db", CARD)[-1][0]


async def post(office: Office, path: str, **body: object) -> tuple[int, dict[str, Any]]:
    async with exchange(office.path, "POST", path, body) as answer:
        return answer.status, dict(await answer.json())


@requirement("fault.f45")
async def test_an_allowed_call_runs_and_its_card_says_who_decided(tmp_path: Path) -> None:
    async with asked(tmp_path) as (office, question):
        done = await office.client.decide(question, action=Action.ALLOW_ONCE)
        await office.chat.until(lambda: "done 0" in office.chat.texts())
        await office.chat.until(lambda: any(item.kind == "edit" for item in office.chat.sent))

    closed = next(item.body for item in office.chat.sent if item.kind == "edit")
    assert (done.question, done.action, done.votes_needed) == (question, Action.ALLOW_ONCE, 0)
    assert office.tools.ran == [("add", '{"n":0}')]
    assert "Allowed once by root" in closed
    assert "via the shell" in closed


@requirement("fault.f45")
@pytest.mark.parametrize("again", [Action.ALLOW_ONCE, Action.DENY])
async def test_whoever_is_late_is_told_who_was_first_and_nothing_runs_twice(
    tmp_path: Path, again: Action
) -> None:
    async with asked(tmp_path) as (office, question):
        await office.client.decide(question, action=Action.ALLOW_ONCE)
        status, body = await post(office, f"/v1/approvals/{question}", decision=again.value)
        await office.chat.until(lambda: "done 0" in office.chat.texts())

    assert (status, body["code"]) == (409, "already_resolved")
    assert (body["decision"], body["decided_via"]) == ("allow-once", "cli")
    assert body["decided_by"] == f"cli:{office.desk.about.uid}"
    assert isinstance(body["decided_at"], int)
    assert "Allowed once by root" in body["error"]
    assert len(office.tools.ran) == 1


@requirement("fault.f45", "approval.decide.surfaces")
async def test_a_press_in_the_chat_comes_before_the_shell(tmp_path: Path) -> None:
    async with asked(tmp_path) as (office, question):
        token = token_of(office.chat.cards()[0], "Deny")
        await office.runtime.intake.emit(press(token, n=900, place=office.chat.cards()[0].place))
        await office.chat.until(lambda: any(item.kind == "edit" for item in office.chat.sent))
        with pytest.raises(GatewayRefused) as late:
            await office.client.decide(question, action=Action.ALLOW_ONCE)

    assert late.value.details["decided_by"] == "loop:1"
    assert late.value.details["decided_via"] == "button"
    assert office.tools.ran == []


async def test_fifty_decisions_at_once_have_one_winner(tmp_path: Path) -> None:
    async def attempt(office: Office, question: str, n: int) -> int:
        decision = "allow-once" if n % 2 else "deny"
        return (await post(office, f"/v1/approvals/{question}", decision=decision))[0]

    async with asked(tmp_path) as (office, question):
        answers = await asyncio.gather(*(attempt(office, question, n) for n in range(50)))

    assert sorted(answers) == [200] + [409] * 49


async def test_a_quorum_counts_people_and_says_how_many_are_missing(tmp_path: Path) -> None:
    async with asked(tmp_path, quorum=2) as (office, question):
        status, body = await post(office, f"/v1/approvals/{question}", decision="allow-once")
        again, repeated = await post(office, f"/v1/approvals/{question}", decision="allow-once")
        token = token_of(office.chat.cards()[0], "Allow once")
        await office.runtime.intake.emit(press(token, n=900))
        await office.chat.until(lambda: "done 0" in office.chat.texts())

    assert (status, body["resolved"], body["votes_needed"]) == (200, False, 1)
    assert (again, repeated["code"]) == (409, "already_resolved")


@requirement("fault.f45")
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"decision": "maybe"}, 400, "invalid_arguments"),
        ({}, 400, "invalid_arguments"),
        ({"decision": "allow-once", "surface": "moon"}, 400, "invalid_arguments"),
        ({"decision": "allow-once", "args_sha": "0" * 64}, 409, "changed"),
        ({"decision": "allow-always"}, 409, "not_offered"),
    ],
)
async def test_a_decision_that_cannot_be_made_changes_nothing(
    tmp_path: Path, body: dict[str, Any], status: int, code: str
) -> None:
    async with asked(tmp_path) as (office, question):
        answer = await post(office, f"/v1/approvals/{question}", **body)
        pending = await office.readers.questions.open(limit=9)

    assert (answer[0], answer[1]["code"]) == (status, code)
    assert [item.id for item in pending] == [question]


@pytest.mark.parametrize("name", ["zzzz", "short", "%2e%2e"])
async def test_an_id_that_names_nothing_is_not_found(tmp_path: Path, name: str) -> None:
    async with asked(tmp_path) as (office, question):
        answered = await post(office, f"/v1/approvals/{name}", decision="deny")
        prefix = await post(office, f"/v1/approvals/{question[:6].upper()}", decision="deny")

    assert (answered[0], answered[1]["code"]) == (404, "not_found")
    assert (prefix[0], prefix[1]["approval_id"]) == (200, question)


@requirement("approval.decide.surfaces")
@pytest.mark.parametrize("allowed", [True, False])
async def test_the_bridge_decides_only_where_it_may(tmp_path: Path, *, allowed: bool) -> None:
    async with asked(tmp_path, bridge_decides=allowed) as (office, question):
        status, body = await post(
            office, f"/v1/approvals/{question}", decision="deny", surface="bridge"
        )

    votes = rows(tmp_path / "state.db", "SELECT actor, surface FROM vote")
    assert (status, votes) == (
        (200, [(f"bridge:{office.desk.about.uid}", "bridge")]) if allowed else (403, [])
    )
    assert allowed or body["code"] == "not_allowed"


@requirement("fault.f45")
async def test_a_program_that_the_gateway_started_may_not_decide(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from pathlib import Path;"
        "from gateway.control.client import SocketClient;"
        "from gateway.domain.question import Action;"
        "asyncio.run(SocketClient(Path(sys.argv[1])).decide(sys.argv[2], action=Action.ALLOW_ONCE))"
    )
    async with asked(tmp_path) as (office, question):
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", code, str(office.path), question],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        pending = await office.readers.questions.open(limit=9)

    assert "may not decide for a person" in done.stderr
    assert [item.id for item in pending] == [question]


@requirement("approval.grants")
async def test_a_rule_is_revoked_once(tmp_path: Path) -> None:
    async with asked(tmp_path, times=2) as (office, question):
        await office.client.decide(question, action=Action.ALLOW_SESSION, surface=Surface.DASHBOARD)
        await office.chat.until(lambda: "done 0" in office.chat.texts())
        (rule,) = await office.readers.rules.live()
        await office.client.revoke_rule(str(rule.id))
        with pytest.raises(GatewayRefused, match="there is no rule"):
            await office.client.revoke_rule(str(rule.id))
        with pytest.raises(GatewayRefused, match="there is no rule x/y"):
            await office.client.revoke_rule("x/y")
        await office.say("again")
        await office.chat.until(lambda: len(office.chat.cards()) == 2)

    assert json.loads(office.tools.ran[0][1]) == {"n": 0}
    assert len(office.tools.ran) == 1
