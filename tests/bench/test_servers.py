"""The figures about many servers, calls and people measure what they say."""

import pytest

from bench.servers import beside_a_person, long_answer, together
from tests.mcp_host.hosting import legacy, running

pytestmark = pytest.mark.anyio


async def test_four_calls_of_half_a_second_run_at_the_same_time_and_to_their_end() -> None:
    async with running(legacy()) as host:
        row = await together(host)
        calls = host.status().statistics.calls

    assert calls % 4 == 0
    assert 500 <= row.get("ours", 0) < 2_000


async def test_a_call_is_timed_while_a_question_is_open_in_another_chat() -> None:
    async with running(legacy(max_connections=2)) as host:
        row = await beside_a_person(host)
        asked = host.status().statistics

    assert (asked.elicitation.requests, asked.connections) == (2, 2)
    assert row.get("ours", 0) > 0


async def test_a_long_answer_is_timed_beside_the_bare_client() -> None:
    async with running(legacy()) as host:
        row = await long_answer(host)

    assert row.get("ours", 0) > 0
    assert row.get("floor")
