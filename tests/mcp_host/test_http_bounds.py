"""What a remote server sends is cut at a cap, in bounded memory, and the server stays in use."""

import gzip
import json
import tracemalloc
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final

import pytest

from gateway.domain.tools import CallState
from mcp_host.server_config import ServerConfig
from mcp_host.transports.messages import MAX_MESSAGE
from tests.fakes.loopback_http import Answer, Request
from tests.fakes.mcp.http_server import mcp_server
from tests.mcp_host.hosting import running
from tests.support.requirement import requirement

pytestmark = pytest.mark.anyio

MB: Final = 1_000_000
PIECE: Final = b" " * MB
JSON: Final = {"content-type": "application/json"}
MOST_MEMORY: Final = 6 * MAX_MESSAGE
"""Of a message at its cap: as bytes, as text, and while one becomes the other."""

Reply = Callable[[Request, Answer], Awaitable[None]]


async def packed(request: Request, answer: Answer) -> None:
    await answer.whole(200, _bomb(1), headers={**JSON, "content-encoding": "gzip"})


async def packed_twice(request: Request, answer: Answer) -> None:
    await answer.whole(200, _bomb(2), headers={**JSON, "content-encoding": "gzip, gzip"})


@cache
def _bomb(layers: int) -> bytes:
    """Two hundred megabytes, made small."""
    found = gzip.compress(b"\x00" * (200 * MB), compresslevel=1)
    for _ in range(layers - 1):
        found = gzip.compress(found)
    return found


async def endless(request: Request, answer: Answer) -> None:
    await answer.start_events(headers=JSON)
    for _ in range(500):
        await answer.piece(PIECE)


async def endless_event(request: Request, answer: Answer) -> None:
    await answer.start_events()
    await answer.piece(b"data: ")
    for _ in range(500):
        await answer.piece(PIECE)


async def deep(request: Request, answer: Answer) -> None:
    nested = "[" * 100_000 + "]" * 100_000
    said = f'{{"jsonrpc": "2.0", "id": {json.dumps(request.body["id"])}, "result": {nested}}}'
    await answer.whole(200, said.encode(), headers=JSON)


@requirement("threat.s21")
@pytest.mark.parametrize("reply", [packed, packed_twice, endless, endless_event, deep])
async def test_an_answer_without_measure_is_an_error_and_the_next_call_works(reply: Reply) -> None:
    async def intercept(request: Request, answer: Answer) -> bool:
        if request.body.get("method") != "tools/call" or calls:
            return False
        calls.append(request)
        await reply(request, answer)
        return True

    calls: list[Request] = []
    # What making them takes is not what reading them takes.
    for layers in (1, 2):
        _bomb(layers)
    async with mcp_server(intercept=intercept) as server:
        config = ServerConfig.model_validate({"url": server.url})
        async with running(config) as host:
            tracemalloc.start()
            try:
                result = await host.call("write", "x")
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            again = await host.call("echo", "fine")

    assert result.state in {CallState.ERROR, CallState.UNKNOWN}
    assert result.text
    assert len(result.text) < 1_000
    assert again.text == "fine"
    assert peak < MOST_MEMORY
