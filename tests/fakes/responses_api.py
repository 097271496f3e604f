"""A scripted OpenAI Responses service on a loopback socket; how to script it: `model_script`."""

import itertools
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

from tests.fakes.chat_completions import FakeModels, failed, text_of
from tests.fakes.loopback_http import Answer, Handler, Loopback, Request, serve
from tests.fakes.model_script import Asked, Json, Reply, Script

USAGE = {
    "input_tokens": 11,
    "output_tokens": 7,
    "total_tokens": 18,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


@asynccontextmanager
async def responses_api(
    script: Script | None = None, *, port: int = 0
) -> AsyncGenerator[FakeModels]:
    """Serve `POST /v1/responses`, streaming and not."""
    followed = script or Script()
    ids = itertools.count(1)

    def make(server: Loopback) -> Handler:
        async def handle(request: Request, answer: Answer) -> None:
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
    given = body.get("input") or ()
    items = cast("Sequence[Json]", [{"content": given}] if isinstance(given, str) else given)
    last: Json = items[-1] if items else {}
    kind = last.get("type", "message")
    tools = cast("Sequence[Mapping[str, str]]", body.get("tools") or ())
    return Asked(
        text=text_of(last.get("output") if kind == "function_call_output" else last.get("content")),
        role="tool" if kind == "function_call_output" else str(last.get("role", "user")),
        offers=frozenset(tool["name"] for tool in tools),
        model=str(body.get("model", "")),
    )


class _Speaker:
    """Writes one response object, in events or whole."""

    def __init__(self, reply: Reply, answer: Answer, *, model: str, number: int) -> None:
        self._fault = reply.fault
        self._size = reply.piece
        self._answer = answer
        self._model = model
        self._number = number
        self._sequence = itertools.count()
        self._text = "" if reply.fault == "empty" else reply.text
        self._calls = reply.raw_calls
        self._cut = reply.finish == "length"

    async def whole(self) -> None:
        if self._fault in {"cut", "ends"}:
            self._answer.declare(10_000)
            self._answer.cut()
            return
        await self._answer.json(200, self._response(self._items(), done=True))

    async def stream(self) -> None:
        await self._answer.start_events()
        await self._event("response.created", response=self._response([], done=False))
        for index, item in enumerate(self._items()):
            is_text = item["type"] == "message"
            empty: Json = {"content": []} if is_text else {"arguments": ""}
            await self._event(
                "response.output_item.added", item={**item, **empty}, output_index=index
            )
            await (self._text_events if is_text else self._call_events)(item, index)
            if self._fault and self._fault != "empty":
                await self._break_off()
                return
            await self._event("response.output_item.done", item=item, output_index=index)
        end = "response.incomplete" if self._cut else "response.completed"
        await self._event(end, response=self._response(self._items(), done=True))
        await self._answer.end_events()

    async def _break_off(self) -> None:
        if self._fault == "cut":
            self._answer.cut()
            return
        if self._fault == "stream_error":
            await self._event("error", code="server_error", message="boom", param=None)
        await self._answer.end_events()

    async def _text_events(self, item: Json, index: int) -> None:
        where: Json = {"item_id": item["id"], "output_index": index, "content_index": 0}
        part: Json = {"type": "output_text", "text": "", "annotations": []}
        await self._event("response.content_part.added", **where, part=part)
        half = len(self._text) // 2 if self._fault else len(self._text)
        for start in range(0, half, self._size):
            delta = self._text[start : start + self._size]
            await self._event("response.output_text.delta", **where, delta=delta, logprobs=[])
        if not self._fault:
            done: Json = {**where, "text": self._text, "logprobs": []}
            await self._event("response.output_text.done", **done)
            await self._event("response.content_part.done", **where, part=self._part())

    async def _call_events(self, item: Json, index: int) -> None:
        where: Json = {"item_id": item["id"], "output_index": index}
        arguments = str(item["arguments"])
        for start in range(0, len(arguments), self._size):
            delta = arguments[start : start + self._size]
            await self._event("response.function_call_arguments.delta", **where, delta=delta)
        done: Json = {**where, "name": item["name"], "arguments": arguments}
        await self._event("response.function_call_arguments.done", **done)

    def _items(self) -> Sequence[Json]:
        said: list[Json] = []
        if self._text:
            said.append(
                {
                    "id": f"msg_{self._number}",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [self._part()],
                }
            )
        calls: list[Json] = [
            {
                "id": f"fc_{self._number}_{index}",
                "type": "function_call",
                "call_id": f"call_{self._number}_{index}",
                "name": name,
                "arguments": arguments,
                "status": "completed",
            }
            for index, (name, arguments) in enumerate(self._calls)
        ]
        return [*said, *calls]

    def _part(self) -> Json:
        return {"type": "output_text", "text": self._text, "annotations": [], "logprobs": []}

    def _response(self, output: Sequence[Json], *, done: bool) -> Json:
        status = ("incomplete" if self._cut else "completed") if done else "in_progress"
        return {
            "id": f"resp_{self._number}",
            "object": "response",
            "created_at": 1_767_268_800,
            "model": self._model,
            "status": status,
            "incomplete_details": {"reason": "max_output_tokens"} if done and self._cut else None,
            "error": None,
            "instructions": None,
            "metadata": {},
            "output": output,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "top_p": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "usage": USAGE if done else None,
        }

    async def _event(self, name: str, /, **fields: object) -> None:
        data = {"type": name, "sequence_number": next(self._sequence), **fields}
        await self._answer.event(data, name=name)
