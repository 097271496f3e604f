from datetime import timedelta

import pytest

from gateway.domain.tools import Answers, Selection, ServerState, ServerStatistics, ServerStatus
from gateway.runtime.server_replies import server_detail, server_line, started, tools_shown
from tests.support.clock import NOON
from tests.support.requirement import requirement


def status(
    name: str = "files", state: ServerState = ServerState.READY, **more: object
) -> ServerStatus:
    fields: dict[str, object] = {"since": NOON, "tools": 5, **more}
    return ServerStatus(name=name, state=state, **fields)  # pyright: ignore[reportArgumentType]


@requirement("command.mcp_name", "mcp.statistics")
def test_a_server_in_detail_has_its_counts_its_reasons_and_its_numbers() -> None:
    told = server_detail(
        status(
            notes=("30 filtered: not in include", "6 filtered: exclude write*"),
            selection=Selection(
                found=41,
                filtered={"not in include": 30, "exclude write*": 6},
                collided=("mcp__files__read_file",),
                utilities_off={
                    "list_prompts": "the server offers no prompts",
                    "get_prompt": "the server offers no prompts",
                    "read_resource": "the server has a tool of that name",
                },
            ),
            statistics=ServerStatistics(
                calls=4,
                errors=1,
                p50_ms=3,
                p95_ms=10,
                restarts=2,
                connections=2,
                most_connections=4,
                elicitation=Answers(requests=3, accepted=1, declined=1, cancelled=1),
                sampling={"requests": 2, "answered": 1, "input_tokens": 50},
            ),
        )
    )

    assert told.splitlines() == [
        "**files** ready, 5 tools",
        "- found 41, registered 5, filtered 36, collided 1",
        "- 30 filtered: not in include",
        "- 6 filtered: exclude write*",
        "- no list_prompts and get_prompt: the server offers no prompts",
        "- no read_resource: the server has a tool of that name",
        "- 4 calls, 1 error, p50 3 ms, p95 10 ms",
        "- its questions keep conversations apart: 2 of at most 4 connections open",
        "- restarted 2 times",
        "- asked people 3 times: 1 accepted, 1 declined, 1 cancelled, 0 failed",
        "- asked the model: requests 2, answered 1, input tokens 50",
    ]


@requirement("command.mcp_tools")
def test_a_parked_server_has_its_reason_and_its_next_try() -> None:
    at = NOON + timedelta(minutes=5)
    told = server_line(
        status(state=ServerState.PARKED, tools=1, reason="no answer", next_probe_at=at)
    )

    assert told == f"**files** parked, 1 tool: no answer: next try at {at.astimezone():%H:%M}"


@requirement("mcp.lazy.shown")
def test_a_server_that_sleeps_says_when_it_starts() -> None:
    assert tools_shown(1, sleeps=True) == "1 tool (lazy, starts on first use)"
    line = server_line(status(state=ServerState.LAZY, tools=7))
    assert line == "**files** lazy, 7 tools (lazy, starts on first use)"


@requirement("mcp.lazy.shown")
@pytest.mark.parametrize(
    ("states", "told"),
    [
        ([], "MCP servers: 0 ok, 0 parked"),
        (
            [ServerState.READY] * 2 + [ServerState.PARKED] + [ServerState.LAZY] * 3,
            "MCP servers: 2 ok, 1 parked, 3 lazy, not spawned yet",
        ),
        (
            [ServerState.READY, ServerState.CONNECTING, ServerState.DISABLED],
            "MCP servers: 1 ok, 0 parked, 1 still connecting",
        ),
    ],
)
def test_a_start_says_how_its_servers_did(states: list[ServerState], told: str) -> None:
    assert started([status(state=state) for state in states]) == told
