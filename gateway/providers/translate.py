"""Our requests and replies as the model library's messages, and back. Pure; loaded with the library."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from pydantic_ai import messages as library
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from gateway.domain.canonical import CanonicalJson, NotCanonical, canonical, parse_json
from gateway.domain.errors import ModelRejected, ModelUnavailable
from gateway.domain.model import (
    AssistantSaid,
    Finish,
    FunctionAnswer,
    FunctionCall,
    FunctionSpec,
    ModelMessage,
    ModelReply,
    ModelRequest,
    Picture,
    Usage,
    UserSaid,
)
from gateway.domain.text import shorten

_RAW_LIMIT: Final = 2_000
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NO_ARGUMENTS: Final = CanonicalJson("{}")


def to_messages(history: Sequence[ModelMessage]) -> list[library.ModelMessage]:
    """Return the history with neighbours of one side joined, as providers expect it."""
    messages: list[library.ModelMessage] = []
    incoming: list[library.ModelRequestPart] = []
    # Nothing may stand between the answers to the calls of one reply.
    behind: list[library.ModelRequestPart] = []
    for message in history:
        match message:
            case UserSaid():
                incoming += [*behind, _prompt(message.text, message.pictures)]
                behind = []
            case FunctionAnswer():
                outcome = "failed" if message.failed else "success"
                text = sendable(message.text)
                incoming.append(
                    library.ToolReturnPart(message.name, text, message.id, outcome=outcome)
                )
                if message.pictures:
                    behind.append(_prompt(f"(shown by {message.name}:)", message.pictures))
            case AssistantSaid():
                if incoming:
                    messages.append(library.ModelRequest([*incoming, *behind]))
                    incoming, behind = [], []
                if parts := _said(message):
                    messages.append(library.ModelResponse(parts))
    if incoming:
        messages.append(library.ModelRequest([*incoming, *behind]))
    return messages


def has_pictures(request: ModelRequest) -> bool:
    """Return whether a request shows the model a picture."""
    return any(not isinstance(item, AssistantSaid) and item.pictures for item in request.history)


def without_pictures(request: ModelRequest) -> ModelRequest:
    """Return the request for a model that sees none; its texts name them."""
    history = tuple(
        item if isinstance(item, AssistantSaid) else replace(item, pictures=())
        for item in request.history
    )
    return replace(request, history=history)


def _prompt(text: str, pictures: Sequence[Picture]) -> library.UserPromptPart:
    said = sendable(text)
    if not pictures:
        return library.UserPromptPart(said)
    shown = [library.BinaryContent(item.data, media_type=item.media_type) for item in pictures]
    return library.UserPromptPart([said, *shown])


def sendable(text: str) -> str:
    """Return text that has a UTF-8 form; what has none would stop every request of its session."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def to_parameters(request: ModelRequest) -> ModelRequestParameters:
    """Return the functions and the system text of a request."""
    system = sendable(request.system)
    instructions = [library.InstructionPart(system)] if system else []
    return ModelRequestParameters(
        function_tools=[_definition(function) for function in request.functions],
        instruction_parts=instructions,
    )


def to_reply(response: library.ModelResponse, *, model: str) -> ModelReply:
    """Return what the model answered; an empty answer is one too.

    Raises:
        ModelUnavailable: The answer broke off.
        ModelRejected: It was filtered, or cut before it said anything.
    """
    if response.state != "complete" or response.finish_reason == "error" or not _ended(response):
        raise ModelUnavailable(model, "its answer broke off")
    calls = _calls(response)
    text = response.text or ""
    if response.finish_reason == "content_filter":
        text = _own_refusal(response)
        if not text:
            raise ModelRejected(model, "its content filter stopped the answer")
        calls = ()
    cut = response.finish_reason == "length"
    if cut and not text.strip() and not calls:
        raise ModelRejected(model, "max_tokens was used up before it said anything")
    usage = Usage(
        input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens
    )
    finish = Finish.LENGTH if cut else Finish.TOOLS if calls else Finish.STOP
    return ModelReply(text=text, calls=calls, usage=usage, finish=finish, model=model)


def _ended(response: library.ModelResponse) -> bool:
    """Return whether the provider said that, and why, it ended; a reason we do not know counts."""
    details = response.provider_details or {}
    return response.finish_reason is not None or bool(details.get("finish_reason"))


def _said(message: AssistantSaid) -> list[library.ModelResponsePart]:
    parts: list[library.ModelResponsePart] = (
        [library.TextPart(sendable(message.text))] if message.text else []
    )
    parts.extend(library.ToolCallPart(call.name, call.arguments, call.id) for call in message.calls)
    return parts


def _definition(function: FunctionSpec) -> ToolDefinition:
    # Strict mode would rewrite a server's schema; our own checks run on the schema as it is.
    return ToolDefinition(
        name=function.name,
        description=sendable(function.description),
        parameters_json_schema=cast("dict[str, object]", _sendable(dict(function.parameters))),
        strict=False,
    )


def _sendable(value: object) -> object:
    match value:
        case str():
            return sendable(value)
        case Mapping():
            entries = cast("Mapping[str, object]", value)
            return {sendable(key): _sendable(item) for key, item in entries.items()}
        case list() | tuple():
            return [_sendable(item) for item in cast("Sequence[object]", value)]
        case _:
            return value


def _own_refusal(response: library.ModelResponse) -> str:
    """Return the sentence with which the model itself declined, "" when a filter cut it off."""
    said = (response.provider_details or {}).get("refusal")
    return said if isinstance(said, str) else ""


def _calls(response: library.ModelResponse) -> tuple[FunctionCall, ...]:
    """Return the calls; ids that repeat get a number, since answers are paired by them."""
    seen: set[str] = set()
    calls: list[FunctionCall] = []
    for number, part in enumerate(response.tool_calls):
        unique = part.tool_call_id
        if unique in seen:
            unique = f"{unique}-{number}"
        seen.add(unique)
        arguments, problem = _arguments(part.args)
        calls.append(
            FunctionCall(id=unique, name=part.tool_name, arguments=arguments, problem=problem)
        )
    return tuple(calls)


def _arguments(raw: str | dict[str, object] | None) -> tuple[CanonicalJson, str]:
    """Return the arguments, or `{}` and what is wrong with what the model wrote."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return _NO_ARGUMENTS, ""
    try:
        value = parse_json(raw) if isinstance(raw, str) else raw
        if isinstance(value, dict):
            return canonical(cast("object", value)), ""
        raise NotCanonical("not an object")
    except NotCanonical as error:
        wrote = raw if isinstance(raw, str) else repr(raw)
        problem = f"the arguments are not a JSON object ({error}): {shorten(wrote, _RAW_LIMIT)}"
        return _NO_ARGUMENTS, problem
