"""Replies and answers as the JSON text of their step rows, and back. Pure."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from gateway.domain.canonical import CanonicalJson, canonical
from gateway.domain.files import FileState
from gateway.domain.message import Attachment, AttachmentKind
from gateway.domain.model import Finish, FunctionCall, ModelReply, Usage
from gateway.domain.tools import CallState

MAX_ANSWER_BYTES: Final = 1_000_000
"""Of one tool's answer, as UTF-8; the rest is cut and the model is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedReply:
    """A model's reply and how long it took."""

    reply: ModelReply
    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one step gave; `name` is the alias that was called, `files` are kept for the reply."""

    state: CallState
    text: str
    name: str = ""
    files: tuple[Attachment, ...] = ()


def reply_to_json(timed: TimedReply) -> str:
    """Return the text of a model step's result."""
    reply = timed.reply
    return canonical(
        {
            "text": reply.text,
            "calls": [
                {
                    "id": call.id,
                    "name": call.name,
                    "arguments": call.arguments,
                    "problem": call.problem,
                }
                for call in reply.calls
            ],
            "input_tokens": reply.usage.input_tokens,
            "output_tokens": reply.usage.output_tokens,
            "finish": reply.finish.value,
            "model": reply.model,
            "ms": timed.ms,
        }
    )


def reply_from_json(text: str) -> TimedReply:
    """Read what `reply_to_json` wrote."""
    stored = _read(text)
    calls = cast("list[Mapping[str, str]]", stored["calls"])
    return TimedReply(
        reply=ModelReply(
            text=str(stored["text"]),
            calls=tuple(
                FunctionCall(
                    id=call["id"],
                    name=call["name"],
                    arguments=CanonicalJson(call["arguments"]),
                    problem=call["problem"],
                )
                for call in calls
            ),
            usage=Usage(
                input_tokens=cast("int", stored["input_tokens"]),
                output_tokens=cast("int", stored["output_tokens"]),
            ),
            finish=Finish(str(stored["finish"])),
            model=str(stored["model"]),
        ),
        ms=cast("int", stored["ms"]),
    )


def answer_to_json(answer: Answer) -> str:
    """Return the text of a tool step's result."""
    stored: dict[str, object] = {
        "name": answer.name,
        "state": answer.state.value,
        "text": answer.text,
    }
    if answer.files:
        stored["files"] = [_file_to_plain(file) for file in answer.files]
    return canonical(stored)


def answer_from_json(text: str) -> Answer:
    """Read what `answer_to_json` wrote."""
    stored = _read(text)
    files = cast("list[Mapping[str, str | int]]", stored.get("files", []))
    return Answer(
        name=str(stored["name"]),
        state=CallState(str(stored["state"])),
        text=str(stored["text"]),
        files=tuple(_file(item) for item in files),
    )


def _file_to_plain(file: Attachment) -> Mapping[str, object]:
    return {
        "kind": file.kind.value,
        "media_type": file.media_type,
        "name": file.name,
        "size": file.size or 0,
        "key": file.key,
        "sha256": file.sha256,
    }


def _file(stored: Mapping[str, str | int]) -> Attachment:
    return Attachment(
        kind=AttachmentKind(str(stored["kind"])),
        media_type=str(stored["media_type"]),
        name=str(stored["name"]),
        size=int(stored["size"]),
        key=str(stored["key"]),
        sha256=str(stored["sha256"]),
        state=FileState.STORED,
    )


def _read(text: str) -> Mapping[str, object]:
    return cast("Mapping[str, object]", json.loads(text))


def bounded(answer: Answer) -> Answer:
    """Return the answer with its text cut to what a row may hold."""
    text = capped(answer.text)
    return answer if text is answer.text else dataclasses.replace(answer, text=text)


def capped(text: str) -> str:
    """Return the text, cut to `MAX_ANSWER_BYTES` with a note of how much is missing."""
    if len(text) * 4 <= MAX_ANSWER_BYTES:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= MAX_ANSWER_BYTES:
        return text
    kept = data[:MAX_ANSWER_BYTES].decode("utf-8", "ignore")
    return f"{kept}\n[cut: {len(data) - MAX_ANSWER_BYTES} of {len(data)} bytes left out]"
