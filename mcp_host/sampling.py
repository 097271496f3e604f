"""A server's `sampling/createMessage`: read into a request to our model, its reply into a result.

Pure. What is hidden is cleaned away; what a model here cannot be given is refused with a reason.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, cast

from gateway.domain.canonical import NotCanonical, canonical
from gateway.domain.model import (
    AssistantSaid,
    Finish,
    FunctionAnswer,
    FunctionCall,
    FunctionSpec,
    ModelMessage,
    ModelReply,
    UserSaid,
)
from mcp_host.sanitize import MAX_DESCRIPTION, clean_json, clean_line, clean_schema, clean_text

SAMPLE: Final = "sampling/createMessage"

MAX_MESSAGES: Final = 1_000
MAX_TOOLS: Final = 128
MAX_HINTS: Final = 10
MAX_MODEL_NAME: Final = 200
MAX_STOPS: Final = 16

_FUNCTION_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MUST_CALL: Final = "Answer by calling at least one of the tools."


class Refusal(Enum):
    """Why a request gets no answer, as its JSON-RPC code: people, limits, the request itself."""

    PERSON = -1
    INVALID = -32602
    LIMIT = -32603


class SamplingRefused(Exception):
    """The server gets this error instead of an answer; the text holds nothing it must not know."""

    def __init__(self, why: str, kind: Refusal = Refusal.LIMIT) -> None:
        super().__init__(why)
        self.why = why
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a server wants of a model; `tool_rounds` is how often tools were used before."""

    system: str
    history: tuple[ModelMessage, ...]
    functions: tuple[FunctionSpec, ...]
    max_tokens: int | None
    hints: tuple[str, ...]
    stops: tuple[str, ...]
    tool_rounds: int

    @property
    def excerpt(self) -> str:
        """The last thing that was said, for a person who is asked."""
        said = (message.text for message in reversed(self.history) if message.text)
        return next(said, self.system)


def read_request(params: Mapping[str, object]) -> Asked:
    """Read the parameters of a request.

    Raises:
        SamplingRefused: It is malformed, or has what a model here cannot be given.
    """
    messages = params.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _invalid("there are no messages")
    listed = cast("list[object]", messages)
    if len(listed) > MAX_MESSAGES:
        raise _invalid(f"there are more than {MAX_MESSAGES} messages")
    history = tuple(_history(listed))
    choice = _mapping(params.get("toolChoice")).get("mode")
    functions = () if choice == "none" else _functions(params.get("tools"))
    system = clean_text(_text(params.get("systemPrompt")))
    if functions and choice == "required":
        system = f"{system}\n\n{_MUST_CALL}".strip()
    limit = params.get("maxTokens")
    is_limit = isinstance(limit, int) and not isinstance(limit, bool) and limit > 0
    return Asked(
        system=system,
        history=history,
        functions=functions,
        max_tokens=cast("int", limit) if is_limit else None,
        hints=_hints(params.get("modelPreferences")),
        stops=tuple(_texts(params.get("stopSequences")))[:MAX_STOPS],
        tool_rounds=sum(isinstance(said, AssistantSaid) and bool(said.calls) for said in history),
    )


def result_of(reply: ModelReply, asked: Asked) -> dict[str, object]:
    """Return the result object for a model's reply."""
    text, stopped = _until(reply.text, asked.stops)
    calls = () if stopped else reply.calls
    if calls:
        blocks = [{"type": "text", "text": text}] if text else []
        content: object = [*blocks, *(_tool_use(call) for call in calls)]
    else:
        content = {"type": "text", "text": text}
    reasons = {Finish.STOP: "endTurn", Finish.LENGTH: "maxTokens", Finish.TOOLS: "toolUse"}
    reason = "stopSequence" if stopped else reasons[reply.finish]
    return {"role": "assistant", "content": content, "model": reply.model, "stopReason": reason}


def _tool_use(call: FunctionCall) -> dict[str, object]:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": json.loads(call.arguments),
    }


def _until(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Cut a text before the first stop sequence in it; models here are not told of them."""
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    return (text[: min(found)], True) if found else (text, False)


# --- messages -----------------------------------------------------------------------


def _history(messages: Sequence[object]) -> Iterator[ModelMessage]:
    open_calls: dict[str, str] = {}
    for message in messages:
        fields = _mapping(message)
        blocks = _blocks(fields.get("content"))
        answers = [block for block in blocks if block.get("type") == "tool_result"]
        if open_calls and len(answers) != len(blocks):
            raise _invalid("a tool call has no result right behind it")
        match fields.get("role"):
            case "user" if answers:
                yield from (_answer(block, open_calls) for block in answers)
                if open_calls or len(answers) != len(blocks):
                    raise _invalid("results of tools must be complete and alone in a message")
            case "user":
                yield UserSaid(text="\n".join(_said(block) for block in blocks))
            case "assistant" if not answers:
                said = _assistant(blocks)
                open_calls = {call.id: call.name for call in said.calls}
                yield said
            case "assistant":
                raise _invalid("only a user message may hold the result of a tool")
            case _:
                raise _invalid("a message has no role user or assistant")
    if open_calls:
        raise _invalid("a tool call has no result right behind it")


def _assistant(blocks: Sequence[Mapping[str, object]]) -> AssistantSaid:
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    texts = [_said(block) for block in blocks if block.get("type") != "tool_use"]
    calls = tuple(_call(block) for block in uses)
    if len({call.id for call in calls}) != len(calls):
        raise _invalid("two tool calls have the same id")
    return AssistantSaid(text="\n".join(texts), calls=calls)


def _call(block: Mapping[str, object]) -> FunctionCall:
    identifier, name = _text(block.get("id")), _text(block.get("name"))
    if not identifier or not _FUNCTION_NAME.fullmatch(name):
        raise _invalid("a tool call has no id or no proper name")
    try:
        arguments = canonical(clean_json(_mapping(block.get("input"))))
    except NotCanonical:
        raise _invalid("the input of a tool call is no proper JSON") from None
    return FunctionCall(id=clean_text(identifier), name=name, arguments=arguments)


def _answer(block: Mapping[str, object], open_calls: dict[str, str]) -> FunctionAnswer:
    identifier = clean_text(_text(block.get("toolUseId")))
    name = open_calls.pop(identifier, None)
    if name is None:
        raise _invalid("the result of a tool answers no call before it")
    parts = [_said(part) for part in _blocks(block.get("content"))]
    structured = block.get("structuredContent")
    if structured is not None and not parts:
        parts.append(json.dumps(clean_json(structured), ensure_ascii=False))
    failed = block.get("isError") is True
    return FunctionAnswer(id=identifier, name=name, text="\n".join(parts), failed=failed)


def _said(block: Mapping[str, object]) -> str:
    kind = block.get("type")
    if kind != "text":
        shown = clean_line(_text(kind), limit=40) or "unknown"
        raise _invalid(f"content of the type {shown} cannot be given to the model here")
    return clean_text(_text(block.get("text")))


def _blocks(content: object) -> list[Mapping[str, object]]:
    if isinstance(content, list):
        return [_mapping(block) for block in cast("list[object]", content)]
    return [] if content is None else [_mapping(content)]


# --- the rest -----------------------------------------------------------------------


def _functions(tools: object) -> tuple[FunctionSpec, ...]:
    listed = cast("list[object]", tools) if isinstance(tools, list) else []
    if len(listed) > MAX_TOOLS:
        raise _invalid(f"there are more than {MAX_TOOLS} tools")
    functions = tuple(_function(_mapping(tool)) for tool in listed)
    if len({function.name for function in functions}) != len(functions):
        raise _invalid("two tools have the same name")
    return functions


def _function(tool: Mapping[str, object]) -> FunctionSpec:
    name = _text(tool.get("name"))
    if not _FUNCTION_NAME.fullmatch(name):
        raise _invalid("a tool has a name that models do not take")
    schema = clean_schema(_mapping(tool.get("inputSchema")))
    return FunctionSpec(
        name=name,
        description=clean_text(_text(tool.get("description")), limit=MAX_DESCRIPTION),
        parameters={"properties": {}, **schema, "type": "object"},
    )


def _hints(preferences: object) -> tuple[str, ...]:
    hints = _mapping(preferences).get("hints")
    listed = cast("list[object]", hints) if isinstance(hints, list) else []
    names = (_text(_mapping(hint).get("name")).strip() for hint in listed[:MAX_HINTS])
    return tuple(name for name in names if name.isprintable() and 0 < len(name) <= MAX_MODEL_NAME)


def _mapping(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str) and item]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _invalid(why: str) -> SamplingRefused:
    return SamplingRefused(why, Refusal.INVALID)
