"""One tool call through the host against the bare SDK, on an SDK-built server and on a raw one.

Both take turns in blocks on servers of their own, so that they see the same machine.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from bench.report import Row, emit, percentile, spread
from gateway.domain.canonical import CanonicalJson, canonical
from gateway.domain.form import FormAction, FormAnswer
from gateway.domain.ids import Actor, ChatType, Place, QuestionId
from gateway.domain.tools import CallState, ToolCall, ToolSpec
from gateway.ports import Approval, FormRequest, SamplingRequest
from gateway.runtime.clock import SystemClock
from mcp_host.host import open_host
from mcp_host.server_config import McpConfig, ServerConfig

BLOCKS: Final = 10
CALLS: Final = 60
WARM_UP: Final = 30
TEXT: Final = "lorem ipsum dolor sit amet " * 8
MAX_RATIO: Final = 1.25
MAX_ADDED_MS: Final = 0.15
ROOT: Final = Path(__file__).resolve().parents[1]

Call = Callable[[], Awaitable[None]]


class Unasked:
    """An approver for tools that need none."""

    def __init__(self, arguments: CanonicalJson) -> None:
        self._arguments = arguments

    async def approve(self, spec: ToolSpec) -> Approval:
        return Approval(allowed=False, reason=f"{spec.alias} must not ask here")

    async def started(self, question: QuestionId | None) -> CanonicalJson:
        del question
        return self._arguments

    async def elicit(self, request: FormRequest) -> FormAnswer:
        return FormAnswer(action=FormAction.DECLINE, reason=request.problem)

    async def sample(self, request: SamplingRequest) -> Approval:
        return Approval(allowed=False, reason=f"{request.server} must not ask for the model here")

    async def tell(self, text: str) -> None:
        raise AssertionError(f"nothing was to be told: {text}")


async def ours(stack: AsyncExitStack, server: str) -> Call:
    entry = ServerConfig(
        command=sys.executable, args=("-m", "bench.host_call", "--serve", server), cwd=str(ROOT)
    )
    host = await stack.enter_async_context(
        open_host(
            {"bench": entry},
            mcp=McpConfig(),
            clock=SystemClock(),
            stderr_log=None,
            version="0",
            reload=lambda: {"bench": entry},
        )
    )
    await host.wait_ready(60)
    arguments = canonical({"text": TEXT})
    call = ToolCall(
        id="1",
        alias="mcp__bench__echo",
        arguments=arguments,
        place=Place(platform="bench", chat="1", chat_type=ChatType.DM),
        requester=Actor(platform="bench", id="1"),
    )

    async def once() -> None:
        result = await host.call(call, Unasked(arguments))
        assert result.state is CallState.OK, result.text

    return once


async def bare(stack: AsyncExitStack, server: str) -> Call:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "bench.host_call", "--serve", server], cwd=str(ROOT)
    )
    read, write = await stack.enter_async_context(stdio_client(parameters))
    session = await stack.enter_async_context(ClientSession(read, write))
    await session.initialize()
    await session.list_tools()

    async def once() -> None:
        result = await session.call_tool("echo", {"text": TEXT})
        assert not result.is_error

    return once


async def timed(call: Call, calls: int) -> list[float]:
    taken: list[float] = []
    for _ in range(calls):
        began = time.perf_counter()
        await call()
        taken.append((time.perf_counter() - began) * 1000)
    return taken


async def measure(server: str) -> tuple[list[float], list[float]]:
    async with AsyncExitStack() as stack:
        our_call = await ours(stack, server)
        bare_call = await bare(stack, server)
        for call in (our_call, bare_call):
            await timed(call, WARM_UP)
        our_times: list[float] = []
        bare_times: list[float] = []
        for _ in range(BLOCKS):
            our_times += await timed(our_call, CALLS)
            bare_times += await timed(bare_call, CALLS)
        return our_times, bare_times


def row(server: str, our_times: list[float], bare_times: list[float]) -> Row:
    our_ms, bare_ms = statistics.median(our_times), statistics.median(bare_times)
    ratio, added = our_ms / bare_ms, our_ms - bare_ms
    blocks = [statistics.median(our_times[i : i + CALLS]) for i in range(0, len(our_times), CALLS)]
    on_sdk = server == "sdk"
    goal = f"<= {MAX_RATIO} x" if on_sdk else f"<= +{MAX_ADDED_MS} ms"
    return {
        "name": f"host_call_{server}",
        "unit": "ms",
        "ours": round(our_ms, 3),
        "floor": round(bare_ms, 3),
        "floor_is": f"the bare SDK's client on the same {server} server",
        "ratio": round(ratio, 3),
        "p50_ms": round(our_ms, 3),
        "p95_ms": round(percentile(our_times, 0.95), 3),
        "spread": spread(blocks),
        "goal": goal,
        "met": ratio <= MAX_RATIO if on_sdk else added <= MAX_ADDED_MS,
    }


def serve_sdk() -> None:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench")

    def echo(text: str) -> str:
        return text

    server.tool()(echo)
    server.run()


def serve_raw() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                result: dict[str, Any] = {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "raw", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [{"name": "echo", "inputSchema": schema}]}
            case "tools/call":
                text = message["params"]["arguments"]["text"]
                result = {"content": [{"type": "text", "text": text}]}
            case _:
                continue
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.host_call", description=__doc__)
    parser.add_argument("--serve", choices=("sdk", "raw"), help="be one of the servers")
    match parser.parse_args().serve:
        case "sdk":
            serve_sdk()
        case "raw":
            serve_raw()
        case _:
            for server in ("sdk", "raw"):
                emit(row(server, *asyncio.run(measure(server))))


if __name__ == "__main__":
    main()
