"""Guided mode: with no model configured, a person is led from plain text to one tool call.

A turn is search → choose → arguments → call → result. Each step follows from the history alone,
so a turn that was interrupted goes on where it was. Knows no tool and asks nobody itself: the
functions of the turn do (`tool_search`, `ask_choice`, `ask_arguments`, `tool_call`).
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from gateway.domain.canonical import NotCanonical, canonical, parse_json
from gateway.domain.model import (
    AssistantSaid,
    Finish,
    FunctionAnswer,
    FunctionCall,
    ModelMessage,
    ModelReply,
    ModelRequest,
    Usage,
    UserSaid,
)
from gateway.domain.text import fenced, shorten

__all__ = ["Guided"]

NAME: Final = "guided"
MAX_CHOICES: Final = 5
MAX_QUERY: Final = 500
MAX_LABEL: Final = 120
MAX_RESULT: Final = 4_000

_SEARCH: Final = "tool_search"
_CHOOSE: Final = "ask_choice"
_FILL: Final = "ask_arguments"
_CALL: Final = "tool_call"

_NOTHING_RUN: Final = "Nothing was run."
_NO_WORDS: Final = "Say in words what you want to do, and I look for a tool that does it."
_SPEAKER: Final = re.compile(r"\A\[[^\]\n]{1,100}\] ")
"""In shared conversations a text starts with who wrote it; that is not part of the wish."""

Json: TypeAlias = Mapping[str, object]


class Guided:
    """Implements `ModelProvider` without a model."""

    @property
    def name(self) -> str:
        return NAME

    @property
    def context_window(self) -> int | None:
        return None

    @property
    def asks_person(self) -> bool:
        return True

    async def complete(
        self, request: ModelRequest, *, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Return the next step of the turn; it costs no tokens and never fails."""
        turn = _current_turn(request.history)
        step = _next_step(turn)
        if isinstance(step, str):
            text = "\n\n".join([*turn.said, step])
            if on_text is not None:
                on_text(text)
            return ModelReply(text=text, calls=(), usage=Usage(), finish=Finish.STOP, model=NAME)
        call = step.call or _new_call(step, request.history)
        return ModelReply(
            text=step.text, calls=(call,), usage=Usage(), finish=Finish.TOOLS, model=NAME
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """The part of the history that has no final reply yet.

    `asked` are texts no search was made for, `last` the calls of the latest step, `answers` what
    came back for them, `said` what was said beside calls.
    """

    asked: tuple[str, ...]
    last: tuple[FunctionCall, ...]
    answers: Mapping[str, FunctionAnswer]
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Do:
    """A function to call next; `call` is set when the turn holds it already, unanswered."""

    function: str = ""
    arguments: Json | None = None
    text: str = ""
    call: FunctionCall | None = None


_Step: TypeAlias = _Do | str
"""What comes next: a function, or the final text."""


def _current_turn(history: Sequence[ModelMessage]) -> _Turn:
    asked: list[str] = []
    last: tuple[FunctionCall, ...] = ()
    answers: dict[str, FunctionAnswer] = {}
    said: list[str] = []
    for message in history:
        match message:
            case UserSaid():
                asked.append(message.text)
            case AssistantSaid(calls=()):
                asked, last, answers, said = [], (), {}, []
            case AssistantSaid():
                last, answers = message.calls, {}
                said += [message.text] if message.text else []
                asked = [] if last[0].name == _SEARCH else asked
            case FunctionAnswer():
                answers[message.id] = message
    return _Turn(asked=tuple(asked), last=last, answers=answers, said=tuple(said))


def _next_step(turn: _Turn) -> _Step:
    if not turn.last:
        return _search(turn.asked)
    call = turn.last[0]
    answer = turn.answers.get(call.id)
    if answer is None:
        return _Do(call=call)
    step = _after(call, answer)
    if turn.asked and isinstance(step, str):
        # What was written meanwhile is a request of its own, and this result is not lost.
        return _search(turn.asked, before=step)
    return step


def _after(call: FunctionCall, answer: FunctionAnswer) -> _Step:
    """Return what follows from one answer."""
    if answer.failed:
        return f"That did not work: {_trimmed(answer.text.strip()) or 'no reason was given.'}"
    if call.name == _CALL:
        return _as_block(answer.text.strip()) or "Done; the tool returned no text."
    content = _object(answer.text)
    if content is None:
        return f"That did not work: {_trimmed(answer.text)}"
    if call.name == _SEARCH:
        return _choose(content, call)
    if call.name == _CHOOSE:
        picked = content.get("picked")
        return _Do(function=_FILL, arguments={"tool": picked}) if picked else _not_run(content)
    return _run(content, call)


def _search(asked: Sequence[str], *, before: str = "") -> _Step:
    query = _query(asked)
    if not query:
        return before or _NO_WORDS
    arguments = {"queries": [query], "limit": MAX_CHOICES}
    return _Do(function=_SEARCH, arguments=arguments, text=before)


def _query(asked: Sequence[str]) -> str:
    """Join what was written, the newest first to be kept when it is too much."""
    kept: list[str] = []
    left = MAX_QUERY
    for text in reversed(asked):
        wish = _SPEAKER.sub("", text).strip()
        if kept and len(wish) > left:
            break
        kept.append(shorten(wish, MAX_QUERY))
        left -= len(wish)
    return "\n".join(reversed(kept)).strip()


def _choose(found: Json, call: FunctionCall) -> _Step:
    options: dict[str, str] = {}
    for result in _objects(found.get("results")):
        for tool in _objects(result.get("tools")):
            options.setdefault(str(tool.get("name", "")), _label(tool))
    if not options:
        return _nothing_found(call, found)
    listed = [{"value": value, "label": label} for value, label in options.items()]
    arguments = {"message": "Which tool shall I use?", "options": listed[:MAX_CHOICES]}
    return _Do(function=_CHOOSE, arguments=arguments)


def _run(filled: Json, call: FunctionCall) -> _Step:
    """Call with what was filled in; a tool without arguments was accepted with none."""
    given = filled.get("arguments")
    if filled.get("action") != "accept" or not isinstance(given, dict):
        return _not_run(filled)
    calls = [{"name": _argument(call, "tool"), "arguments": cast("object", given)}]
    return _Do(function=_CALL, arguments={"calls": calls})


def _nothing_found(call: FunctionCall, found: Json) -> str:
    query = "".join(_texts(_argument(call, "queries")))
    text = (
        f"I found no tool for “{shorten(query, 80)}”. `/tools` lists what there is, `/mcp` shows "
        "which servers are connected; more go into `mcp_servers` of the configuration."
    )
    if waiting := _texts(found.get("connecting")):
        text += f" Still connecting: {', '.join(waiting)}; try again in a moment."
    return text


def _not_run(answer: Json) -> str:
    reason = answer.get("reason")
    return f"{_NOTHING_RUN} ({reason})" if isinstance(reason, str) and reason else _NOTHING_RUN


def _label(tool: Json) -> str:
    """Return `server · tool — description` on one line."""
    server = str(tool.get("server", ""))
    name = str(tool.get("name", "")).removeprefix(f"mcp__{server}__")
    description = " ".join(str(tool.get("description", "")).split())
    head = f"{server} · {name}" if server else name
    return shorten(f"{head} — {description}" if description else head, MAX_LABEL)


def _as_block(text: str) -> str:
    """Show JSON as a block of code; anything else is shown as it is."""
    if text[:1] not in {"{", "["}:
        return _trimmed(text)
    try:
        shown = _trimmed(json.dumps(parse_json(text), indent=2, ensure_ascii=False))
    except NotCanonical:
        return _trimmed(text)
    return fenced(shown, language="json")


def _trimmed(text: str) -> str:
    left_out = len(text) - MAX_RESULT
    return text if left_out <= 0 else f"{text[:MAX_RESULT]}\n… (+{left_out} characters)"


def _new_call(step: _Do, history: Sequence[ModelMessage]) -> FunctionCall:
    """Give the call an id no other call of the session has: one made of everything before it."""
    digest = hashlib.sha256()
    for message in history:
        digest.update(repr(message).encode("utf-8", "surrogatepass"))
    return FunctionCall(
        id=f"{NAME}-{digest.hexdigest()[:16]}",
        name=step.function,
        arguments=canonical(step.arguments),
    )


def _argument(call: FunctionCall, name: str) -> object:
    return (_object(call.arguments) or {}).get(name)


def _object(text: str) -> Json | None:
    try:
        value = parse_json(text)
    except NotCanonical:
        return None
    return cast("Json", value) if isinstance(value, dict) else None


def _objects(value: object) -> Sequence[Json]:
    items = cast("Sequence[object]", value) if isinstance(value, list) else ()
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def _texts(value: object) -> Sequence[str]:
    items = cast("Sequence[object]", value) if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, str)]
