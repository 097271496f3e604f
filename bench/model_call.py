"""What the model library costs on each request: ours against a bare HTTP POST of the same body."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, cast

import httpx

from bench.report import emit, median, percentile
from gateway.domain.canonical import canonical
from gateway.domain.model import (
    AssistantSaid,
    FunctionAnswer,
    FunctionCall,
    FunctionSpec,
    ModelMessage,
    ModelRequest,
    UserSaid,
)
from gateway.providers.config import parse_model
from gateway.providers.models import open_model

ROUNDS: Final = 300
WARM_UP: Final = 30
EXCHANGES: Final = 10

Call = Callable[[], Awaitable[object]]


def _request() -> ModelRequest:
    """Make a request as a turn in mid-conversation sends it."""
    history: list[ModelMessage] = []
    for n in range(EXCHANGES):
        call = FunctionCall(id=f"c{n}", name="tool_search", arguments=canonical({"n": n}))
        history += [
            UserSaid(text=f"question {n} " + "lorem ipsum " * 20),
            AssistantSaid(text="", calls=(call,)),
            FunctionAnswer(id=call.id, name=call.name, text="result " * 50),
            AssistantSaid(text="answer " * 30),
        ]
    history.append(UserSaid(text="and now?"))
    functions = tuple(
        FunctionSpec(
            name=name,
            description="Does what it is called.",
            parameters={"type": "object", "properties": {"q": {"type": "string"}}},
        )
        for name in ("tool_search", "tool_describe", "tool_call")
    )
    return ModelRequest(system="Be brief. " * 20, history=tuple(history), functions=functions)


def _ignore(text: str) -> None:
    """Listen to the text as it grows."""


async def _timed(calls: dict[str, Call]) -> dict[str, list[float]]:
    """Return milliseconds of each, taken in turns so that a slow spell hits all alike."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for n in range(WARM_UP + ROUNDS):
        for name, call in calls.items():
            before = time.perf_counter()
            await call()
            if n >= WARM_UP:
                found[name].append((time.perf_counter() - before) * 1_000)
    return found


async def _bodies(request: ModelRequest) -> dict[str, bytes]:
    """Learn from a recording service what the library sends, so that the floor sends the same."""
    from tests.fakes.chat_completions import chat_completions

    async with chat_completions() as fake:
        section = {"provider": "openai", "name": "m", "base_url": fake.url}
        async with open_model(parse_model(section)) as model:
            await model.complete(request)
            await model.complete(request, on_text=_ignore)
    names = ("whole", "streamed")
    pairs = zip(names, fake.requests, strict=True)
    return {name: json.dumps(asked.body).encode() for name, asked in pairs}


async def _measure(url: str) -> dict[str, list[float]]:
    request = _request()
    bodies = await _bodies(request)
    section = {"provider": "openai", "name": "m", "base_url": url}
    headers = {"content-type": "application/json"}
    async with httpx.AsyncClient() as client, open_model(parse_model(section)) as model:

        def post(name: str) -> Call:
            return lambda: client.post(
                f"{url}/chat/completions", content=bodies[name], headers=headers
            )

        return await _timed(
            {
                "floor whole": post("whole"),
                "ours whole": lambda: model.complete(request),
                "floor streamed": post("streamed"),
                "ours streamed": lambda: model.complete(request, on_text=_ignore),
            }
        )


async def _run() -> dict[str, list[float]]:
    """Measure against the scripted service in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.chat_completions", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        line = cast("dict[str, str]", json.loads(await process.stdout.readline()))
        return await _measure(line["url"])
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


def main() -> None:
    times = asyncio.run(_run())
    for kind in ("whole", "streamed"):
        ours, floor = median(times[f"ours {kind}"]), median(times[f"floor {kind}"])
        emit(
            {
                "name": f"model_call {kind}",
                "unit": "ms",
                "ours": round(ours, 3),
                "floor": round(floor, 3),
                "floor_is": "bare httpx POST of the same body",
                "ratio": round(ours / floor, 2),
                "p95_ms": round(percentile(times[f"ours {kind}"], 0.95), 3),
                "goal": "a separate row, no goal",
                "met": None,
            }
        )


if __name__ == "__main__":
    main()
