from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.operations.inbound import Lane
from gateway.domain.tools import Reloaded, ServerState, ServerStatus
from gateway.runtime.commands import COMMANDS, find_command, nearest_command
from tests.fakes.tools import tool
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, GROUP, ROOT, limit, people
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

SPEC = (
    "help new stop status whoami model tools mcp call approve deny approvals login reload-mcp sethome"
    " retry undo title sessions resume usage queue"
)
"""Every command of the product."""


def test_the_table_has_every_command_once() -> None:
    names = [name for item in COMMANDS for name in (item.name, *item.aliases)]
    assert len(names) == len(set(names))
    assert {item.name for item in COMMANDS} == set(SPEC.split())
    assert [item.name for item in COMMANDS if item.lane is Lane.TURN] == [
        "call",
        "queue",
        "retry",
        "undo",
    ]


def test_a_command_is_found_in_any_spelling() -> None:
    for name in ("reload-mcp", "/reload_mcp", "RELOAD-MCP"):
        found = find_command(name)
        assert found is not None
        assert found.name == "reload-mcp"
    assert find_command("frob") is None
    near = nearest_command("aprove")
    assert near is not None
    assert near.name == "approve"


async def test_every_command_of_the_control_lane_has_an_answer(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        for item in COMMANDS:
            if item.lane is Lane.CONTROL:
                said = await chat.say(item.name, by=ROOT)
                # What it stopped says so itself.
                assert said.strip() or item.name == "stop"
                assert "There is no command" not in said


async def test_help_shows_what_one_may_give(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        assert "`/approve ID [session|always]`: Allow what a card asks" in await chat.say("help")
        assert "/reload-mcp" not in await chat.say("help")
        assert "/reload-mcp" in await chat.say("help", by=ROOT)
        assert "You may not use /reload-mcp" in await chat.say("reload_mcp")


async def test_an_unknown_command_names_the_nearest(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        said = await chat.say("aprovals")
        assert said == "There is no command /aprovals. Did you mean /approvals? /help lists them."
        assert await chat.say("xyzzy") == "There is no command /xyzzy. /help lists them."


async def test_stop_ends_the_turn_of_this_place(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        assert await chat.say("stop") == ""
        assert await chat.say("stop") == "Nothing is running here."
        assert chat.stopped == [(GROUP, ANNA)] * 2


async def test_status_and_whoami_say_where_one_is(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        chat.host.add(tool("list_notes"))
        status = await chat.say("status")
        assert f"Conversation `{GROUP.session_key}`" in status
        assert "State: idle" in status
        assert "0 messages" in status
        assert "1 of 1 ready" in status
        assert await chat.say("whoami", by=BEN) == "You are Ben (`loop:2`), role **user**."
        assert "role **admin**" in await chat.say("whoami", by=ROOT)


async def test_status_tells_a_running_turn_from_one_that_waits_for_an_answer(
    tmp_path: Path,
) -> None:
    async with people(tmp_path / "state.db") as chat:
        claim = await chat.turn()
        assert "State: working" in await chat.say("status")
        spec = tool("add_note")
        call = await chat.call(claim=claim, spec=spec)
        asking = chat.tasks.create_task(chat.broker.approve(call, spec, deadline=limit()))
        await chat.card()
        assert "State: waiting for an answer" in await chat.say("status")
        asking.cancel()


@requirement("command.mcp_tools")
async def test_tools_are_listed_and_found(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        assert "no tools yet" in await chat.say("tools")
        for n in range(50):
            chat.host.add(tool(f"note_{n:02}"))
        chat.host.add(tool("send_mail", server="mail"))
        listed = await chat.say("tools")
        assert "`mcp__demo__note_00`: Note_00" in listed
        assert "11 more" in listed
        assert await chat.say("tools", "mail") == "- `mcp__mail__send_mail`: Send_mail"
        assert await chat.say("tools", "zebra") == "No tool matches zebra."


@requirement("command.mcp_tools")
async def test_mcp_says_why_a_server_is_parked_and_when_it_is_tried_again(tmp_path: Path) -> None:
    parked = ServerStatus(
        name="linear",
        state=ServerState.PARKED,
        since=NOON,
        tools=0,
        reason="needs login\x1b[31m",
        next_probe_at=NOON + timedelta(minutes=5),
        notes=("2 tools filtered by exclude",),
    )
    async with people(tmp_path / "state.db") as chat:
        assert await chat.say("mcp") == "No MCP server is configured."
        chat.host.statuses.append(parked)
        at = (NOON + timedelta(minutes=5)).astimezone().strftime("%H:%M")
        line = f"**linear** parked, 0 tools: needs login\\u001b[31m: next try at {at}"
        assert await chat.say("mcp") == f"- {line}"
        assert await chat.say("mcp", "linear") == (
            f"{line}\n- found 0, registered 0, filtered 0, collided 0"
            "\n- 2 tools filtered by exclude"
        )
        assert "There is no MCP server liner" in await chat.say("mcp", "liner")


@requirement("command.reload_mcp.report")
async def test_reload_reports_what_changed(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        assert await chat.say("reload-mcp", by=ROOT) == "Reloaded in 0.0 s. Nothing has changed."
        chat.host.reloaded = Reloaded(added=("a", "b"), parked=(("c", "needs login"),))
        assert await chat.say("reload-mcp", by=ROOT) == (
            "Reloaded in 0.0 s. added: a, b; parked: c (needs login)."
        )


async def test_a_new_session_is_told_with_its_number(tmp_path: Path) -> None:
    async with people(tmp_path / "state.db") as chat:
        assert "(number 1)" in await chat.say("new")
