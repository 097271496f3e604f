"""`/call TOOL {json}` as a turn: a deterministic model that makes the one call it was told to make."""

import json
from collections.abc import Mapping
from typing import Final, cast

from gateway.domain.canonical import NotCanonical, canonical, parse_json
from gateway.domain.model import (
    Finish,
    FunctionAnswer,
    FunctionCall,
    ModelReply,
    ModelRequest,
    Usage,
)
from gateway.runtime import functions
from gateway.runtime.deterministic import Deterministic, said

USAGE: Final = "Usage: /call TOOL {json}, or /call TOOL to be asked for the arguments."
NO_RESULT: Final = "The tool ended without any text."


def direct_call(argument: str) -> Deterministic:
    """Return what does the one call that the text behind `/call` names."""
    return Deterministic(name="call", reply=lambda request: _next(argument, request))


def _next(argument: str, request: ModelRequest) -> ModelReply:
    """Call the tool, after asking for its arguments when none were given; then show the result."""
    tool, _, rest = argument.strip().partition(" ")
    if not tool:
        return said(USAGE)
    answers = [item for item in request.history if isinstance(item, FunctionAnswer)]
    if not answers:
        return _first(tool, rest.strip())
    last = answers[-1]
    if last.name == functions.ARGUMENTS and not last.failed:
        return _filled(tool, last.text)
    return said(last.text.strip() or NO_RESULT)


def _first(tool: str, rest: str) -> ModelReply:
    if not rest:
        return _asked(functions.ARGUMENTS, {"tool": tool})
    try:
        arguments = parse_json(rest)
    except NotCanonical as error:
        return said(f"The arguments are not valid JSON: {error}. {USAGE}")
    if not isinstance(arguments, dict):
        return said(f"The arguments must be a JSON object. {USAGE}")
    return _call(tool, cast("Mapping[str, object]", arguments))


def _filled(tool: str, text: str) -> ModelReply:
    answer = cast("Mapping[str, object]", json.loads(text))
    if answer.get("action") != "accept":
        reason = str(answer.get("reason") or "the form was not sent")
        return said(f"{tool} was not called: {reason}.")
    return _call(tool, cast("Mapping[str, object]", answer.get("arguments") or {}))


def _call(tool: str, arguments: Mapping[str, object]) -> ModelReply:
    return _asked(functions.CALL, {"calls": [{"name": tool, "arguments": arguments}]})


def _asked(name: str, arguments: Mapping[str, object]) -> ModelReply:
    call = FunctionCall(id=f"call-{name}", name=name, arguments=canonical(arguments))
    return ModelReply(text="", calls=(call,), usage=Usage(), finish=Finish.TOOLS)
