"""A scripted OpenAI Chat Completions service on a loopback socket; how to script it: `model_script`."""

import argparse
import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.fakes.loopback_http import Answer, Handler, Loopback, Request, serve
from tests.fakes.model_script import STATUS_FAULTS, Asked, Json, Reply, Script, load_script
from tests.support.eventually import eventually_async

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass(frozen=True, slots=True)
class FakeModels:
    """A running fake: where it is, what it will say, what it was asked."""

    server: Loopback
    script: Script

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def requests(self) -> list[Request]:
        return self.server.requests


@asynccontextmanager
async def chat_completions(
    script: Script | None = None, *, port: int = 0, record: Path | None = None
) -> AsyncGenerator[FakeModels]:
    """Serve `POST /v1/chat/completions` and `GET /v1/models`; `record` gets a JSON line a request."""
    followed = script or Script()
    ids = itertools.count(1)

    def make(server: Loopback) -> Handler:
        async def handle(request: Request, answer: Answer) -> None:
            if record is not None:
                write_down(record, request)
            if request.path.endswith("/models"):
                await answer.json(200, {"object": "list", "data": []})
                return
            reply = followed.next(asked(request.body))
            if await failed(reply, request, answer, server):
                return
            speaker = _Speaker(reply, answer, model=str(request.body["model"]), number=next(ids))
            await (speaker.stream() if request.body.get("stream") else speaker.whole())

        return handle

    async with serve(make, port=port) as server:
        yield FakeModels(server, followed)


def asked(body: Json) -> Asked:
    """Read what a script chooses by."""
    messages = cast("Sequence[Json]", body.get("messages") or ())
    last: Json = messages[-1] if messages else {}
    tools = cast("Sequence[Mapping[str, Json]]", body.get("tools") or ())
    return Asked(
        text=text_of(last.get("content")),
        role=str(last.get("role", "")),
        offers=frozenset(str(tool["function"]["name"]) for tool in tools),
        model=str(body.get("model", "")),
    )


def text_of(content: object) -> str:
    """Return the text of a message, which comes as a string or as parts."""
    if isinstance(content, str):
        return content
    parts = cast("Sequence[Json]", content or ())
    return "".join(str(part.get("text", "")) for part in parts)


async def failed(reply: Reply, request: Request, answer: Answer, server: Loopback) -> bool:
    """Play the faults that come before any text; return whether one did."""
    if reply.fault == "slow":
        await server.closing.wait()
        return True
    if reply.delay:
        with suppress(TimeoutError):
            await asyncio.wait_for(server.closing.wait(), reply.delay)
    if reply.fault == "garbage":
        await answer.whole(200, b"<html>bad gateway</html>")
        return True
    if (fault := STATUS_FAULTS.get(reply.fault)) is None:
        return False
    status, code, kind, message = fault
    key = request.headers.get("authorization", "").removeprefix("Bearer ")
    wait = {} if reply.retry_after is None else {"retry-after": f"{reply.retry_after:g}"}
    error = {"message": message.format(key=key), "type": kind, "code": code, "param": None}
    await answer.json(status, {"error": error}, headers=wait)
    return True


def write_down(path: Path, request: Request) -> None:
    """Append a request to a file of JSON lines, without its credentials."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"path": request.path, "body": request.body}) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    text: str
    calls: Sequence[Json]
    finish: str


class _Speaker:
    """Writes one completion, in pieces or whole."""

    def __init__(self, reply: Reply, answer: Answer, *, model: str, number: int) -> None:
        self._script = reply
        self._answer = answer
        self._base: Json = {"id": f"chatcmpl-{number}", "created": 1_767_268_800, "model": model}
        calls = [
            {
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for index, (name, arguments) in enumerate(reply.raw_calls)
        ]
        text = "" if reply.fault == "empty" else reply.text
        finish = reply.finish or ("tool_calls" if calls else "stop")
        self._reply = _Reply(text=text, calls=calls, finish=finish)

    async def whole(self) -> None:
        reply = self._reply
        message: dict[str, object] = {"role": "assistant", "content": reply.text or None}
        if reply.calls:
            message["tool_calls"] = reply.calls
        choice = {"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}
        body = {**self._base, "object": "chat.completion", "choices": [choice], "usage": USAGE}
        if self._script.fault in {"cut", "ends"}:
            self._answer.declare(len(json.dumps(body)))
            self._answer.cut()
            return
        await self._answer.json(200, body)

    async def stream(self) -> None:
        fault = self._script.fault
        pieces = list(self._pieces())
        if fault in {"cut", "ends", "stream_error"}:
            pieces = pieces[: 1 + len(pieces) // 2]
        await self._answer.start_events()
        for number, delta in enumerate(pieces):
            if self._script.held and number == len(pieces) // 2:
                await eventually_async(Path(self._script.held).exists, what="the rest may come")
            await self._chunk(delta)
        if fault == "cut":
            self._answer.cut()
            return
        if fault == "stream_error":
            await self._answer.event({"error": {"message": "boom", "type": "server_error"}})
        if not fault or fault == "empty":
            await self._chunk({}, finish=self._reply.finish)
            await self._event({"choices": [], "usage": USAGE})
            await self._answer.event("[DONE]")
        await self._answer.end_events()

    def _pieces(self) -> Iterator[Json]:
        """Cut text and arguments into deltas."""
        yield {"role": "assistant", "content": ""}
        size = self._script.piece
        for start in range(0, len(self._reply.text), size):
            yield {"content": self._reply.text[start : start + size]}
        for index, call in enumerate(self._reply.calls):
            function = cast("Mapping[str, str]", call["function"])
            opening = {**call, "index": index, "function": {**function, "arguments": ""}}
            yield {"tool_calls": [opening]}
            arguments = function["arguments"]
            for start in range(0, len(arguments), size):
                part = {"arguments": arguments[start : start + size]}
                yield {"tool_calls": [{"index": index, "function": part}]}

    async def _chunk(self, delta: Json, *, finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        await self._event({"choices": [choice], "usage": None})

    async def _event(self, fields: Json) -> None:
        await self._answer.event({**self._base, "object": "chat.completion.chunk", **fields})


async def _run(port: int, script: Path | None, record: Path | None) -> None:
    followed = load_script(script) if script is not None else None
    async with chat_completions(followed, port=port, record=record) as fake:
        print(json.dumps({"url": fake.url}), flush=True)  # noqa: T201
        await asyncio.Event().wait()


def main() -> None:
    """Serve until killed; the first line on stdout says where."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    asyncio.run(_run(given.port, given.script, given.record))


if __name__ == "__main__":
    main()
